"""People in the store: nobody is lost, nobody comes back, and a copy of the store lets nobody in."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest
import sqlalchemy as sa

from activecover import InputError, Pool, StoreError
from activecover.cli import main
from activecover.workspace import Person, Workspace

#: Adds so many people one after another, and removes every third of them at once.
WORK = """
import sys
from activecover.workspace import Workspace
folder, store, worker, count = sys.argv[1], sys.argv[2] or None, sys.argv[3], int(sys.argv[4])
with Workspace(folder, store) as home:
    for number in range(count):
        home.people.add(f"{worker}-{number}", "annotator")
        if number % 3 == 2:
            home.people.remove(f"{worker}-{number}")
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """A folder, and the address of a store."""
    return tmp_path, None if request.param == "sqlite" else request.getfixturevalue("postgres")()


def test_many_processes_add_and_remove_people_and_all_of_it_counts(place):
    folder, store = place
    processes, each = 6, 20
    with Workspace(folder, store) as home:
        home.people.add("first", "owner")
    running = [
        subprocess.Popen([sys.executable, "-c", WORK, str(folder), store or "", str(worker), str(each)])
        for worker in range(processes)
    ]
    assert [process.wait(300) for process in running] == [0] * processes
    kept = {f"{worker}-{number}" for worker in range(processes) for number in range(each) if number % 3 != 2}
    with Workspace(folder, store) as home:
        assert {person.name for person in home.people.all()} == kept | {"first"}


def test_rights_rotation_and_removal(place):
    with Workspace(*place) as home:
        home.new("mail", Pool([[0.0], [1.0]]), explore=1).close()
        people = home.people
        token = people.add("ann", None, {"mail": "reader"})
        assert people.known_by(token) == Person("ann", None, {"mail": "reader"})
        people.grant("ann", "mail", "annotator")
        people.set_role("ann", "reader")
        assert people.known_by(token) == Person("ann", "reader", {"mail": "annotator"})
        people.revoke("ann", "mail")
        assert people.known_by(token).rights == {}
        session = people.begin_session(token)
        assert people.in_session(session) == Person("ann", "reader", {})
        rotated = people.rotate("ann")
        assert people.known_by(token) is None
        assert people.in_session(session) is None
        assert people.begin_session(token) is None
        session = people.begin_session(rotated)
        people.remove("ann")
        assert (people.known_by(rotated), people.in_session(session), people.all()) == (None, None, [])
        assert people.were_there()
        again = people.add("ann", "reader")
        assert people.in_session(session) is None
        assert [people.known_by(one) for one in (token, rotated, again)] == [None, None, Person("ann", "reader", {})]


def test_the_rights_in_a_campaign_go_with_it(place):
    """Another campaign may be given its number."""
    with Workspace(*place) as home:
        home.new("mail", Pool([[0.0], [1.0]]), explore=1).close()
        token = home.people.add("ann", None, {"mail": "owner"})
        home.remove("mail")
        home.new("secret", Pool([[0.0], [2.0]]), explore=1).close()
        assert home.people.known_by(token) == Person("ann", None, {})


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda people: people.add("ann", "owner"), "there is a 'ann' already"),
        (lambda people: people.add("bob", "king"), "role 'king': choose owner, adjudicator, annotator, reader"),
        (lambda people: people.add("\n", "owner"), "is no name for a person"),
        (lambda people: people.add("bob", None, {"nowhere": "reader"}), "there is no campaign 'nowhere'"),
        (lambda people: people.remove("bob"), "there is no 'bob'"),
        (lambda people: people.rotate("bob"), "there is no 'bob'"),
        (lambda people: people.grant("ann", "nowhere", "reader"), "there is no campaign 'nowhere'"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(tmp_path, act, words):
    with Workspace(tmp_path) as home:
        token = home.people.add("ann", "annotator")
        with pytest.raises(InputError, match=words):
            act(home.people)
        assert [person.name for person in home.people.all()] == ["ann"]
        assert home.people.known_by(token) == Person("ann", "annotator", {})


def test_a_session_ends_when_it_is_not_used_and_at_the_latest_after_a_week(tmp_path):
    with Workspace(tmp_path) as home:
        session = home.people.begin_session(home.people.add("ann", "reader"))

        def age(**columns):
            with home.store.engine().begin() as connection:
                for name, seconds in columns.items():
                    connection.execute(sa.text(f"UPDATE sessions SET {name} = {name} - {seconds}"))

        age(seen=11 * 3600)
        assert home.people.in_session(session) is not None, "and was used by this"
        age(seen=11 * 3600)
        assert home.people.in_session(session) is not None
        age(seen=13 * 3600)
        assert home.people.in_session(session) is None
        session = home.people.begin_session(home.people.rotate("ann"))
        age(expires=7 * 24 * 3600)
        assert home.people.in_session(session) is None


def test_what_is_stored_needs_the_home_s_key(tmp_path):
    """A token's plain hash is not in the store: guesses cannot be compared with a stolen copy."""
    with Workspace(tmp_path) as home:
        token = home.people.add("ann", "owner")
        session = home.people.begin_session(token)
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("store.sqlite*"))
    for secret in (token, session):
        assert secret.encode() not in stored
        assert hashlib.sha256(secret.encode()).hexdigest().encode() not in stored
    (tmp_path / "keys" / "secret").unlink()
    with Workspace(tmp_path) as home:
        assert home.people.known_by(token) is None


# -- lists of earlier versions -----------------------------------------------------------------------------


def old_list(folder, **people):
    """A list as it was kept in a file before."""
    told = {
        hashlib.sha256(f"token of {name}".encode()).hexdigest(): {"name": name, "role": role}
        for name, role in people.items()
    }
    (folder / "people.json").write_text(json.dumps(told))


def test_a_list_in_a_file_is_taken_in_once(place):
    folder, store = place
    old_list(folder, ann="annotator", bob="owner")
    with Workspace(folder, store) as home:
        assert home.people.known_by("token of ann") == Person("ann", "annotator", {})
        assert not (folder / "people.json").exists()
        home.people.remove("bob")
    # As after a crash before the file was removed, or with a copy that someone puts back.
    old_list(folder, ann="owner", bob="owner")
    with Workspace(folder, store) as home:
        assert home.people.all() == [Person("ann", "annotator", {})]
        assert home.people.known_by("token of bob") is None


@pytest.mark.parametrize(
    "damaged",
    ["{", "[]", '{"x": {"name": "ann", "role": "owner"}}', '{"x": 1}', f'{{"{"0" * 64}": {{"name": "a", "role": "king"}}}}',
     "\udcff", "[" * 100_000],
)  # fmt: skip
@pytest.mark.parametrize("command", [["people", "list"], ["serve", "--port", "0"]], ids=["people", "serve"])
def test_a_damaged_list_is_one_line(tmp_path, capsys, damaged, command):
    (tmp_path / "people.json").write_text(damaged, errors="surrogateescape")
    with pytest.raises(StoreError), Workspace(tmp_path) as home:
        home.people.all()
    assert main([*command, "--home", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path / 'people.json'}: damaged" in line
    assert "restore it from a copy, or remove it" in line
    assert (tmp_path / "people.json").exists()


# -- the command ---------------------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys):
    with Workspace(tmp_path) as home:
        home.new("mail", Pool([[0.0], [1.0]]), explore=1).close()

    def run(*words):
        code = main(["people", *words, "--home", str(tmp_path)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out.strip() or said.err.strip()

    code, token = run("add", "ann", "--role", "reader", "--campaign", "mail")
    assert code == 0
    assert json.loads(run("list", "--json")[1]) == [{"name": "ann", "role": None, "campaigns": {"mail": "reader"}}]
    assert run("grant", "ann", "mail", "annotator") == (0, "ann in mail: annotator")
    assert run("role", "ann", "reader") == (0, "ann: reader")
    assert json.loads(run("list", "--json")[1]) == [
        {"name": "ann", "role": "reader", "campaigns": {"mail": "annotator"}}
    ]
    assert "mail: annotator" in run("list")[1]
    assert run("role", "ann", "none")[0] == run("revoke", "ann", "mail")[0] == 0
    code, rotated = run("rotate", "ann")
    assert (code, len(rotated)) == (0, 32)
    with Workspace(tmp_path) as home:
        assert home.people.known_by(token) is None
        assert home.people.known_by(rotated) == Person("ann", None, {})
    assert "nobody is left" in run("remove", "ann")[1]
    assert run("remove", "ann") == (2, "activecover: there is no 'ann' among the people of this server")


def test_people_are_added_to_a_store_whose_address_is_not_on_the_command_line(postgres, tmp_path, capsys, monkeypatch):
    store, file = postgres(), tmp_path / "store"
    file.write_text(store + "\n")
    assert main(["people", "add", "ann", "--home", str(tmp_path), "--store-file", str(file)]) == 0
    monkeypatch.setenv("ACTIVECOVER_STORE", store)
    assert main(["people", "add", "bob", "--home", str(tmp_path)]) == 0
    capsys.readouterr()
    with Workspace(tmp_path, store) as home:
        assert [person.name for person in home.people.all()] == ["ann", "bob"]


def test_secrets_on_the_command_line_are_warned_of(tmp_path, capsys):
    secret = "postgresql://me:hunter2@127.0.0.1:1/none"
    assert main(["people", "list", "--home", str(tmp_path), "--store", secret]) == 2
    said = capsys.readouterr().err
    assert "every user of this machine can see the password in --store: use ACTIVECOVER_STORE" in said
    assert "hunter2" not in said
