"""A home is its owner's alone: modes whatever the umask, homes of earlier versions, locks."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from activecover.workspace import Workspace, archive

NOBODY = 65534


@pytest.fixture
def shared() -> Generator[Path, None, None]:
    """A folder that every user can look into, as ``/srv`` is."""
    folder = Path(tempfile.mkdtemp(prefix="activecover-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=[0o000, 0o777], ids=["open to all", "open to nobody"])
def umask(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def use(folder: Path, table: Path) -> None:
    """Everything that leaves files in a home."""
    with Workspace(folder) as home:
        for name, forgets in (("cars", False), ("own", True)):
            with home.new(
                name, table, learner="explore-commit", explore=0, known=["car0"], id_column="id",
                forget_negatives=forgets, external_positives=table if name == "cars" else None,
            ) as campaign:  # fmt: skip
                for item in campaign.ask(3):
                    campaign.tell(item.id, 0)
        home.forget("own", window=0)
        home.withdraw("cars", ["car9"])
        more = home.folder / "more.csv"
        more.write_text("id,weight,doors\nnew,1200,3\n")
        home.add_rows("cars", more)
        more.unlink()
        archive(home, "cars", home.folder / "cars.zip")
        home.people.add("ann", "annotator")
        home.open("cars").close()


def table_in(folder: Path) -> Path:
    table = folder / "cars.csv"
    table.write_text("id,weight,doors\n" + "".join(f"car{n},{900 + n * 7 % 400},{n % 5}\n" for n in range(20)))
    table.chmod(0o600)
    return table


def open_to_others(folder: Path) -> list[str]:
    """What is not as private as it should be, or not even its owner's."""
    found = []
    for place in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(place.lstat().st_mode)
        if mode != (0o700 if place.is_dir() else 0o600):
            found.append(f"{place.relative_to(folder)} {mode:o}")
    return found


def test_everything_is_private_whatever_the_umask(shared: Path, tmp_path: Path, umask: None) -> None:
    table = table_in(tmp_path)
    use(shared / "home", table)
    assert open_to_others(shared / "home") == []
    # While it is in use as well: SQLite's own files, and those of locks.
    with Workspace(shared / "home") as home, home.open("cars") as campaign:
        campaign.ask()
        assert list(home.folder.glob("*-wal"))
        assert open_to_others(shared / "home") == []


def test_homes_of_earlier_versions_are_made_private(shared: Path, tmp_path: Path) -> None:
    use(shared / "home", table_in(tmp_path))
    for place in (shared / "home", *(shared / "home").rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    with Workspace(shared / "home") as home:
        (shared / "home/cars.zip").chmod(0o600)  # a file of the user's, which stays as it is
        home.open("cars").close()
        assert open_to_others(shared / "home") == []


def reach_of(user: int, folder: Path, known: list[Path]) -> list[str]:
    """What another user can list, open or lock in a folder; ``known`` are paths that were guessed."""
    import fcntl

    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as said:
            answer = said.read().splitlines()
        assert os.waitpid(child, 0)[1] == 0
        return answer
    try:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        assert os.access(folder.parent, os.R_OK | os.X_OK)
        for path in (folder, *known):
            try:
                handle = os.open(path, os.O_RDONLY)
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
                os.write(writing, f"{path.name}\n".encode())
            except OSError:
                continue
        os._exit(0)
    finally:
        os._exit(1)


def test_another_user_cannot_take_a_lock(shared: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only a superuser can become somebody else")
    use(shared / "home", table_in(tmp_path))
    known = [path for path in (shared / "home").rglob("*") if path.is_file()]
    assert any(path.suffix == ".turn" for path in known)
    assert reach_of(NOBODY, shared / "home", known) == []
    # Not even if somebody opens the folder again: the files are private by themselves.
    for place in (shared / "home", *(shared / "home").rglob("*")):
        if place.is_dir():
            place.chmod(0o755)
    files = [path for path in known if path.suffix in (".turn", ".open", ".brain", ".sqlite", ".lock")]
    assert set(reach_of(NOBODY, shared / "home", files)) <= {"home"}
