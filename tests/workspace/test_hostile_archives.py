"""Archives by somebody who means harm: what they could once write, remove and read, and what they cannot."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import FORMAT_1, FORMAT_1_OWN, STRANGER, Forged, snapshot

from activecover import ActiveCoverError
from activecover.cli import main
from activecover.workspace import PublicKey, Workspace, archive, restore


@pytest.fixture
def around(tmp_path: Path) -> Path:
    """Files of somebody's, and among them the folder for a home."""
    place = tmp_path / "around"
    (place / "victim" / "deep").mkdir(parents=True)
    (place / "victim" / "letter.txt").write_text("dear diary")
    (place / "victim" / "deep" / "key.txt").write_text("secret of the server's user")
    return place


def restored(home: Workspace, path: Path, name: str | None = None) -> str | None:
    try:
        return restore(home, path, name)
    except ActiveCoverError as wrong:
        lines = str(wrong).splitlines()
    assert len(lines) == 1
    return None


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("where", ["absolute", "../stolen", "pools/../../stolen", "../victim/deep/new"])
def test_the_pool_of_an_archive_stays_in_the_home(around: Path, tmp_path: Path, where: str, own: bool) -> None:
    forged = Forged.read(FORMAT_1_OWN if own else FORMAT_1)
    forged.manifest["about"]["pool"] = str(around / "stolen") if where == "absolute" else where
    path = forged.write(tmp_path / "a.zip")
    home = around / "home"
    before = snapshot(around)
    with Workspace(home) as place:
        restored(place, path)
    assert snapshot(around, (home,)) == before
    assert not [name for name in around.parent.iterdir() if name.name not in ("around", "a.zip")]


@pytest.mark.parametrize(
    "name", ["x/../../victim", "../victim", "x/../../victim/deep", "/victim", "a/../../../b", ".."]
)
def test_the_name_in_an_archive_is_checked_before_it_is_part_of_a_path(around: Path, tmp_path: Path, name: str) -> None:
    forged = Forged.read(FORMAT_1_OWN)
    forged.manifest["name"] = name
    path = forged.write(tmp_path / "a.zip")
    before = snapshot(around)
    with Workspace(around / "home") as home:
        assert restored(home, path) is None
        assert restored(home, FORMAT_1, name) is None
    assert snapshot(around, (around / "home",)) == before


@pytest.mark.parametrize("where", ["../victim", "absolute", "pools/../../victim/deep"])
def test_removing_what_an_archive_brought_removes_nothing_else(around: Path, tmp_path: Path, where: str) -> None:
    forged = Forged.read(FORMAT_1)
    forged.manifest["about"]["pool"] = str(around / "victim") if where == "absolute" else where
    path = forged.write(tmp_path / "a.zip")
    before = snapshot(around)
    with Workspace(around / "home") as home:
        if (name := restored(home, path)) is not None:
            home.remove(name)
    assert snapshot(around, (around / "home",)) == before


@pytest.mark.parametrize(
    "file", ["../../../victim/deep/key.txt", "absolute", "embedding/../../../../victim/deep/key.txt"]
)
def test_an_archive_made_of_what_an_archive_brought_holds_no_file_of_the_server(
    around: Path, tmp_path: Path, file: str
) -> None:
    secret = around / "victim" / "deep" / "key.txt"
    forged = Forged.read(FORMAT_1)
    digest = hashlib.blake2b(secret.read_bytes(), digest_size=16).hexdigest()
    named = str(secret) if file == "absolute" else file
    forged.pool["files"][named] = {"size": len(secret.read_bytes()), "blocks": [digest]}
    path = forged.write(tmp_path / "a.zip")
    with Workspace(around / "home") as home:
        name = restored(home, path)
        if name is not None:
            archive(home, name, tmp_path / "b.zip")
            with zipfile.ZipFile(tmp_path / "b.zip") as packed:
                assert secret.read_bytes() not in {packed.read(each) for each in packed.namelist()}
        assert name is None


def test_a_pool_of_an_earlier_archive_is_not_handed_out_either(around: Path, tmp_path: Path) -> None:
    """A home may hold what an earlier version let in."""
    secret = around / "victim" / "deep" / "key.txt"
    with Workspace(around / "home") as home:
        name = restore(home, FORMAT_1)
        place = home.pool_folder(name).folder / "pool.json"
        about = json.loads(place.read_bytes())
        del about["check"]
        digest = hashlib.blake2b(secret.read_bytes(), digest_size=16).hexdigest()
        about["files"][str(secret)] = {"size": len(secret.read_bytes()), "blocks": [digest]}
        check = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16).hexdigest()
        place.write_text(json.dumps({**about, "check": check}))
        with pytest.raises(ActiveCoverError, match="damaged"):
            archive(home, name, tmp_path / "b.zip")


@pytest.mark.parametrize(
    ("name", "value"), [("learner", ""), ("learner", "nobody@1"), ("explore", [5000]), ("explore", [0, 0])]
)
def test_settings_that_make_no_learner_are_found_before_anything_is_kept(tmp_path: Path, name: str, value: Any) -> None:
    forged = Forged.read(FORMAT_1)
    forged.events[0][name] = value
    forged.rehash = forged.rechain = forged.recheck = forged.resign = True
    with Workspace(tmp_path / "home") as home:
        with pytest.raises(ActiveCoverError):
            restore(home, forged.write(tmp_path / "a.zip"))
        assert home.names() == []


def test_the_head_that_a_manifest_states_is_compared(tmp_path: Path) -> None:
    forged = Forged.read(FORMAT_1)
    path = forged.write(tmp_path / "a.zip")
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    manifest = json.loads(parts["manifest.json"])
    parts["manifest.json"] = json.dumps({**manifest, "head": "0" * 64}).encode()
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in parts.items():
            packed.writestr(name, data)
    with Workspace(tmp_path / "home") as home:
        assert restored(home, path) is None
        assert home.names() == []


def test_what_is_signed_with_another_key_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names and times that were made up, in a chain that fits, signed by whoever made them up."""
    with Workspace(tmp_path / "home") as home:
        restore(home, FORMAT_1, "cars")
        archive(home, "cars", tmp_path / "true.zip")
    at = ["--home", str(tmp_path / "home")]
    assert main(["key", "--json", *at]) == 0
    key = json.loads(capsys.readouterr().out)
    assert main(["certify", "cars", "--out", str(tmp_path / "true.json"), *at]) in (0, 1)
    forged = Forged.read(tmp_path / "true.zip")
    for event in forged.events:
        event |= {"at": 1.5e9} | ({"by": "a famous doctor"} if "by" in event else {})
    forged.write(tmp_path / "forged.zip")
    with Workspace(tmp_path / "strangers") as home:
        restore(home, tmp_path / "forged.zip")
        assert main(["certify", "cars", "--out", str(tmp_path / "forged.json"), "--home", str(home.folder)]) in (0, 1)
    capsys.readouterr()

    def check(document: str, packed: str, *more: str) -> tuple[int, str]:
        code = main(["certify", "--verify", str(tmp_path / document), "--archive", str(tmp_path / packed), *more])
        said = capsys.readouterr()
        return code, said.out + said.err

    given = ["--key", key["public_key"]]
    code, text = check("true.json", "true.zip", *given)
    assert code == 0
    assert "signed with the key that you gave" in text
    code, text = check("true.json", "true.zip")
    assert code == 0
    assert key["fingerprint"] in text
    assert "the signature does not show" in text
    assert check("true.json", "forged.zip")[0] == 1
    assert check("true.json", "forged.zip", *given)[0] == 2
    assert check("forged.json", "forged.zip", *given)[0] == 2
    # Without a key that was handed over nobody can tell; it says so.
    code, text = check("forged.json", "forged.zip")
    assert "the signature does not show" in text
    code, text = check("forged.json", "true.zip", *given)
    assert code == 1
    assert "signed with another key" in text
    with Workspace(tmp_path / "third") as home:
        for packed, expected in (("forged.zip", 2), ("true.zip", 0)):
            assert main(["restore", str(tmp_path / packed), *given, "--home", str(home.folder)]) == expected
        assert home.names() == ["cars"]


def test_a_name_that_was_made_up_on_a_certificate_fails_its_signature(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Workspace(tmp_path / "home") as home:
        restore(home, FORMAT_1, "cars")
        archive(home, "cars", tmp_path / "a.zip")
    assert main(["certify", "cars", "--out", str(tmp_path / "a.json"), "--home", str(tmp_path / "home")]) in (0, 1)
    document = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "b.json").write_text(json.dumps({**document, "campaign": "another trial"}))
    capsys.readouterr()
    assert main(["certify", "--verify", str(tmp_path / "b.json"), "--archive", str(tmp_path / "a.zip")]) == 1
    assert "changed after it was signed" in capsys.readouterr().out


def test_a_signature_cannot_be_left_out(tmp_path: Path) -> None:
    with Workspace(tmp_path / "home") as home:
        restore(home, FORMAT_1, "cars")
        archive(home, "cars", tmp_path / "a.zip")
        forged = Forged.read(tmp_path / "a.zip")
        forged.signed = False
        with pytest.raises(ActiveCoverError, match="signature is missing"):
            restore(home, forged.write(tmp_path / "b.zip"), "again")


@pytest.mark.parametrize("packed", [FORMAT_1, FORMAT_1_OWN])
def test_unsigned_archives_of_earlier_versions_can_be_read(
    tmp_path: Path, packed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--home", str(tmp_path / "home")]
    assert main(["restore", str(packed), "--as", "old", *at]) == 0
    assert "not signed" in capsys.readouterr().err
    with Workspace(tmp_path / "home") as home, home.open("old") as campaign:
        assert len(campaign.labels()) >= 12
        campaign.ask()
        assert campaign.pool.content(0).keys() == {"text"}
    assert main(["key", "--json", *at]) == 0
    key = json.loads(capsys.readouterr().out)["public_key"]
    assert main(["restore", str(packed), "--as", "signed", "--key", key, *at]) == 2
    assert "is not signed" in capsys.readouterr().err


def test_an_unsigned_certificate_of_an_earlier_version_can_be_verified(capsys: pytest.CaptureFixture[str]) -> None:
    document = FORMAT_1.with_name("certificate-1.json")
    assert main(["certify", "--verify", str(document), "--archive", str(FORMAT_1)]) == 0
    said = capsys.readouterr().out
    assert said.count("not signed") == 2


def die_at(home: Path, path: Path, count: int) -> bool:
    """Restore in a process that is killed at the ``count``-th time it changes a file; whether it came to its end."""
    child = os.fork()
    if child == 0:
        left = count

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "sqlite3.connect"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        with Workspace(home) as place:
            restore(place, path, "one")
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("packed", [FORMAT_1, FORMAT_1_OWN])
def test_restoring_that_is_killed_at_any_moment_leaves_nothing(tmp_path: Path, packed: Path) -> None:
    def things() -> set[str]:
        every = (path for path in (tmp_path / "home").rglob("*") if not path.name.startswith("store.sqlite"))
        return {path.relative_to(tmp_path / "home").as_posix() for path in every}

    with Workspace(tmp_path / "home") as home:
        restore(home, packed, "one")
        home.remove("one")
    before, count = things(), 0
    while True:
        count += 1
        done = die_at(tmp_path / "home", packed, count)
        with Workspace(tmp_path / "home") as home:
            if done:
                break
            assert not list((tmp_path / "home").glob(".restore-*"))
            if "one" not in home.names():
                assert things() == before
                continue
            # Killed when everything was in place.
            with home.open("one") as campaign:
                assert len(campaign.labels()) >= 12
            home.remove("one")
            assert things() == before
    assert count > 20
    with Workspace(tmp_path / "home") as home, home.open("one") as campaign:
        assert len(campaign.labels()) >= 12


def with_recipe(folder: Path, change: dict[str, Any], arrays: bytes | None = None) -> tuple[Path, Path]:
    """An archive in which the recipe for more rows is another one; and a file of rows."""
    file = folder / "f.csv"
    file.write_text("id,x,y\n" + "".join(f"r{row},{row * 3 % 7},{row * row % 5}\n" for row in range(20)))
    with Workspace(folder / "strangers") as home:
        home.new("a", file, id_column="id", explore=0, known=["r1"]).close()
        archive(home, "a", folder / "a.zip")
    forged = Forged.read(folder / "a.zip")
    recipe = json.loads(forged.files["pool/embedding/embedding.json"]) | change
    if arrays is not None:
        forged.files["pool/embedding/embedding.npz"] = arrays
        recipe["arrays"] = hashlib.blake2b(arrays, digest_size=16).hexdigest()
    forged.files["pool/embedding/embedding.json"] = json.dumps(recipe).encode()
    return forged.write(folder / "b.zip"), file


def test_a_model_that_an_archive_names_is_not_run_for_more_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = {"columns": None, "seed": 0, "model": "somebody/a-model"}
    recipe = {"embedding": "sentence", "parameters": parameters, "learnt": {"dimensions": 2}}
    path, file = with_recipe(tmp_path, recipe)
    at = ["--home", str(tmp_path / "home")]
    assert main(["restore", str(path), *at]) == 0
    capsys.readouterr()
    for command in (["add-rows", "a", str(file)], ["import", "a", str(file), "--outside"]):
        assert main([*command, *at]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "came in an archive that names 'somebody/a-model'" in line
    # Of somebody whose key was compared it is taken, as far as it is installed.
    assert (
        main(
            ["restore", str(path), "--as", "b", "--key", PublicKey(STRANGER.public_key().public_bytes_raw()).text, *at]
        )
        == 0
    )
    assert main(["add-rows", "b", str(file), *at]) == 2
    assert "came in an archive" not in capsys.readouterr().err


def test_arrays_that_are_packed_within_an_archive_have_a_limit_too(tmp_path: Path) -> None:
    packed, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (50 << 20,)})
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mean.npy", header.getvalue() + bytes(400 << 20))
    path, _ = with_recipe(tmp_path, {}, packed.getvalue())
    with Workspace(tmp_path / "home") as home:
        with pytest.raises(ActiveCoverError, match="it unpacks to"):
            restore(home, path)
        assert home.names() == []


def test_the_same_pool_is_shared_and_a_changed_one_is_not(tmp_path: Path) -> None:
    with Workspace(tmp_path / "home") as home:
        for name in ("a", "b"):
            restore(home, FORMAT_1, name)
        assert home.store.about("a")["pool"] == home.store.about("b")["pool"]
        home.remove("b")
        home.pool_folder("a").erase([3])
        restore(home, FORMAT_1, "c")
        assert home.store.about("a")["pool"] != home.store.about("c")["pool"]
        with home.open("c") as campaign:
            assert campaign.pool.content(3)["text"] == "text 3"
        assert home.pool_folder("a").load().withdrawn[3]
