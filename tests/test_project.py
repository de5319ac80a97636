"""What surrounds the package: versions, packaging, the reference, the site, workflow files. Fast; nothing is installed."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import activecover

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


def tool(name: str) -> Any:
    """A module of tools/."""
    if str(ROOT / "tools") not in sys.path:
        sys.path.insert(0, str(ROOT / "tools"))
    return importlib.import_module(name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The files that name the version, ready for a release of 0.3.0."""
    (tmp_path / "src" / "activecover").mkdir(parents=True)
    (tmp_path / "src" / "activecover" / "__init__.py").write_text('__version__ = "0.3.0"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.3.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [0.3.0] - 2030-01-02\n\n## [0.2.0] - 2029-01-02\n")
    return tmp_path


class TestVersion:
    def test_every_place_names_the_version_of_the_package(self) -> None:
        assert set(tool("version").named().values()) == {activecover.__version__}

    def test_the_build_reads_it_from_the_package(self) -> None:
        assert "version" not in PROJECT["project"]
        assert PROJECT["project"]["dynamic"] == ["version"]
        assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/activecover/__init__.py"

    def test_the_conda_recipe_follows(self) -> None:
        recipe = yaml.safe_load((ROOT / "deploy/conda/recipe.yaml").read_text(encoding="utf-8"))
        assert recipe["context"]["version"] == activecover.__version__
        wanted = {re.sub(r"[><=\s].*", "", one): one.replace(" ", "") for one in recipe["requirements"]["run"]}
        assert wanted.pop("python") == f"python{PROJECT['project']['requires-python']}"
        assert sorted(wanted.values()) == sorted(PROJECT["project"]["dependencies"])

    def test_a_tag_that_agrees_with_everything_may_be_released(self, repository: Path) -> None:
        assert tool("version").problems("v0.3.0", repository) == []

    @pytest.mark.parametrize("name", ["src/activecover/__init__.py", "CITATION.cff", "CHANGELOG.md"])
    def test_a_tag_that_one_place_does_not_know_is_refused(self, repository: Path, name: str) -> None:
        path = repository / name
        path.write_text(path.read_text().replace("0.3.0", "0.2.9"))
        assert tool("version").problems("v0.3.0", repository) == [f"{name} names 0.2.9, not 0.3.0"]

    def test_a_release_without_a_date_is_refused(self, repository: Path) -> None:
        (repository / "CHANGELOG.md").write_text("## [0.3.0] - unreleased\n")
        assert "has no date" in tool("version").problems("v0.3.0", repository)[0]


class TestMinimum:
    def test_every_dependency_has_a_lower_bound(self) -> None:
        bounds = list(tool("minimum").bounds(["web", "plot", "postgres", "parquet", "images", "chemistry"]))
        assert "numpy==1.26" in bounds
        assert "psycopg==3.1" in bounds
        assert len(bounds) == len({bound.partition("==")[0] for bound in bounds})

    def test_a_dependency_without_one_is_named(self, tmp_path: Path) -> None:
        project = tmp_path / "pyproject.toml"
        project.write_text('[project]\ndependencies = ["numpy"]\n[project.optional-dependencies]\n')
        with pytest.raises(ValueError, match="'numpy' has no lower bound"):
            list(tool("minimum").bounds([], project))

    def test_the_quick_tests_exist(self) -> None:
        assert all((ROOT / name).exists() for name in tool("quick").QUICK)

    def test_everything_that_an_extra_needs_is_pinned(self) -> None:
        pinned = {
            line.partition("==")[0].lower().replace("_", "-")
            for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
            if "==" in line
        }
        for extra in ("docs", "coverage", "release"):
            for requirement in PROJECT["project"]["optional-dependencies"][extra]:
                name = re.match(r"[\w-]+", requirement)
                assert name is not None
                assert name[0].lower() in pinned | {"activecover"}, requirement


class TestReference:
    def test_every_module_is_public_or_internal(self) -> None:
        package = ROOT / "src" / "activecover"
        modules = {path.parent.name for path in package.glob("*/__init__.py")}
        modules |= {path.stem for path in package.glob("*.py") if not path.stem.startswith("_")}
        reference = tool("reference")
        assert {name for name in reference.PUBLIC if "." not in name} | reference.INTERNAL == modules
        assert not set(reference.PUBLIC) & reference.INTERNAL

    def test_every_public_name_can_be_imported_and_is_on_a_page(self) -> None:
        reference = tool("reference")
        pages = reference.python_pages(ROOT)
        for module in reference.PUBLIC:
            names = reference.public_names(reference.source_of(ROOT, module))
            assert names, module
            assert all(hasattr(importlib.import_module(f"activecover.{module}"), name) for name in names)
            text = pages[f"reference/python/{reference.slug(module)}.md"]
            assert all(f"        - {name}\n" in text for name in names)

    def test_every_top_level_name_leads_to_its_module(self) -> None:
        index = tool("reference").python_pages(ROOT)["reference/python/index.md"]
        assert not [name for name in activecover.__all__ if f".{name})" not in index]

    def test_every_command_is_on_a_page_with_its_options(self) -> None:
        typer_main = importlib.import_module("typer.main")
        root = typer_main.get_command(importlib.import_module("activecover.cli._app").app)
        text = "".join(tool("reference").command_pages().values())
        for name, command in root.commands.items():
            for sub, one in getattr(command, "commands", {"": command}).items():
                assert f"## activecover {name} {sub}".rstrip() + "\n" in text
                assert all(option in text for parameter in one.params for option in parameter.opts if "--" in option)

    def test_every_path_of_the_api_is_on_the_page_and_every_link_has_its_schema(self) -> None:
        for module in ("fastapi", "httpx"):
            pytest.importorskip(module, reason=f"{module} is not installed")
        reference = tool("reference")
        document = reference.openapi()
        text = reference.http_page(document)
        assert len(document["paths"]) > 20
        assert not [path for path in document["paths"] if path not in text]
        anchors = set(re.findall(r"\{ #([\w-]+) \}", text)) | {"errors"}
        assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= anchors


class TestSite:
    @pytest.fixture
    def site(self, tmp_path: Path) -> Path:
        (tmp_path / "a").mkdir()
        (tmp_path / "index.html").write_text('<h1 id="top">x</h1><a href="a/#part">1</a><img src="p.png">')
        (tmp_path / "a" / "index.html").write_text('<h2 id="part"></h2><a href="..">2</a><a href="https://x.org">3</a>')
        (tmp_path / "p.png").write_bytes(b"")
        return tmp_path

    def test_a_site_without_broken_links_passes(self, site: Path) -> None:
        assert tool("check_site").problems(site) == ([], 1)

    @pytest.mark.parametrize(
        ("page", "says"),
        [
            ('<a href="gone.html">x</a>', "gone.html leads nowhere"),
            ('<a href="a/#gone">x</a>', "names no anchor"),
            ('<img src="gone.png">', "gone.png leads nowhere"),
            ('<script src="https://x.org/x.js"></script>', "from another host"),
            ('<link rel="stylesheet" href="https://x.org/x.css">', "from another host"),
        ],
    )
    def test_whatever_is_broken_is_named(self, site: Path, page: str, says: str) -> None:
        (site / "index.html").write_text(page)
        broken, _ = tool("check_site").problems(site)
        assert len(broken) == 1
        assert says in broken[0]

    def test_links_that_leave_the_folder_lead_to_pages_of_the_site(self) -> None:
        moved = tool("site_hooks").moved
        assert moved("[a](../SECURITY.md#x)", "docs/serve.md", "serve.md") == "[a](project/security.md#x)"
        assert moved("[a](../deploy)", "docs/serve.md", "serve.md") == "[a](repository/deploy.md)"
        assert moved("[a](docs/pools.md)", "CONTRIBUTING.md", "project/contributing.md") == "[a](../pools.md)"
        assert moved("[a](pools.md) [b](https://x.org)", "docs/a.md", "a.md") == "[a](pools.md) [b](https://x.org)"
        assert moved("```\n[a](../SECURITY.md)\n```\n", "docs/a.md", "a.md") == "```\n[a](../SECURITY.md)\n```\n"

    def test_every_page_of_the_folder_is_in_the_navigation(self) -> None:
        text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
        assert not [page for page in pages if page not in text]


class TestForge:
    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
    def test_a_workflow_has_few_rights_and_a_time_limit(self, path: Path) -> None:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        assert all(job["timeout-minutes"] <= 90 for job in workflow["jobs"].values())

    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
    def test_a_workflow_calls_targets_and_scripts_that_exist(self, path: Path) -> None:
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        text = path.read_text(encoding="utf-8")
        called = re.findall(r"run: make ([\w-]+)", text)
        assert set(called) <= targets
        scripts = re.findall(r"python (tools/\w+\.py)", text)
        assert called or scripts
        assert all((ROOT / script).is_file() for script in scripts)

    def test_the_matrix_has_every_python_that_the_package_names(self) -> None:
        jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))["jobs"]
        pythons = jobs["matrix"]["strategy"]["matrix"]["python"]
        named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
        assert pythons == jobs["distribution"]["strategy"]["matrix"]["python"] == named
        assert f">={pythons[0]}" == PROJECT["project"]["requires-python"]

    def test_every_target_of_make_that_is_named_exists(self) -> None:
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("CONTRIBUTING.md", "README.md", "docs/deprecation.md", "docs/decisions.md"):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets, name

    def test_all_forms_and_rules_are_there(self) -> None:
        names = [
            ".github/CODEOWNERS", ".github/dependabot.yml", ".github/PULL_REQUEST_TEMPLATE.md", ".pre-commit-config.yaml",
            "CODE_OF_CONDUCT.md", "GOVERNANCE.md", "SECURITY.md", "deploy/Containerfile",
        ]  # fmt: skip
        assert not [name for name in names if not (ROOT / name).is_file()]

    def test_files_for_machines_are_valid_yaml(self) -> None:
        paths = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
        assert len(paths) > 6
        assert all(isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict) for path in paths)


class TestLocalCheck:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        """A folder with the script and a make that shows what it was called with."""
        (tmp_path / "work" / ".ci").mkdir(parents=True)
        script = tmp_path / "work" / ".ci" / "run"
        script.write_bytes((ROOT / ".ci" / "run").read_bytes())
        script.chmod(0o755)
        (tmp_path / "work" / "Makefile").write_text(
            "test check:\n\t@echo $@ require=$(ACTIVECOVER_REQUIRE) data=$(ACTIVECOVER_DATA)\n"
        )
        return tmp_path / "work"

    def run(self, clone: Path, **environment: str) -> list[str]:
        path = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(clone)}
        done = subprocess.run(
            [clone / ".ci" / "run"], env={**path, **environment}, text=True, capture_output=True, check=True
        )
        return done.stdout.splitlines()

    def test_without_data_it_runs_and_skips(self, clone: Path) -> None:
        assert self.run(clone) == ["test require= data=", "check require= data="]

    def test_where_data_are_laid_out_nothing_may_be_skipped(self, clone: Path) -> None:
        assert self.run(clone, ACTIVECOVER_DATA="x") == ["test require=all data=x", "check require=all data=x"]
        assert self.run(clone, ACTIVECOVER_DATA="x", ACTIVECOVER_REQUIRE="")[0] == "test require= data=x"

    def test_what_is_skipped_is_counted(self, tmp_path: Path) -> None:
        test = tmp_path / "test_it.py"
        test.write_text("import pytest\ndef test_a(data_dir): ...\ndef test_b(): pytest.skip('no reason')\n")
        (tmp_path / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            "--rootdir",
            str(tmp_path),
        ]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run([*command, str(test)], env=environment, text=True, capture_output=True, cwd=tmp_path)
        assert "2 tests skipped, 1 of them for lack of benchmark data" in done.stdout, done.stdout + done.stderr


def test_no_file_names_a_machine_or_a_registry() -> None:
    places = [ROOT / "Makefile", ROOT / "mkdocs.yml", ROOT / ".pre-commit-config.yaml", *(ROOT / ".ci").iterdir()]
    places += [*(ROOT / ".github").rglob("*.*"), *(ROOT / "tools").glob("*.*"), ROOT / "deploy/conda/recipe.yaml"]
    for path in places:
        assert not re.search(r"/(root|home|work)/|p[y]pi\.o[r]g|n[p]mjs", path.read_text(encoding="utf-8")), path
