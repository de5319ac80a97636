"""Campaigns that forget, made by upload: nothing of a negative stays anywhere on the server's side."""

from __future__ import annotations

import csv
import os
import time
import zipfile
from pathlib import Path

import pytest
from serving import Server, ThreadServer, httpx

from activecover.cli import main
from activecover.web._uploads import OLD, Uploads
from activecover.workspace import Workspace, privacy_check

ROWS = 40


def marker(row: int) -> str:
    return f"planted-{row * 7919 % 100003:06d}-marker"


def is_positive(item: str) -> bool:
    return int(item[1:]) % 8 == 0


def table(path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "remark"])
        for row in range(ROWS):
            text = "cheap pills order now" if row % 8 == 0 else f"minutes of the {marker(row)} meeting"
            writer.writerow([f"m{row}", text, f"remark {row % 8 and marker(row)}"])
    return path


def planted() -> list[bytes]:
    return [marker(row).encode() for row in range(ROWS) if row % 8]


def everything(*folders: Path) -> bytes:
    """Every byte below some folders, and what is packed in their files."""
    parts = []
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        parts.append(path.read_bytes())
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                parts += [packed.read(name) for name in packed.namelist()]
    return b"\n".join(parts)


def left(*folders: Path) -> list[bytes]:
    raw = everything(*folders)
    return [each for each in planted() if each in raw]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def send(client, file: Path) -> str:
    answer = client.post(
        "/api/uploads",
        params={"name": file.name},
        content=file.read_bytes(),
        headers={"Content-Type": "application/octet-stream"},
    )
    return answer.raise_for_status().json()["upload"]


def make(client, name: str, upload: str) -> None:
    client.get(f"/api/uploads/{upload}/preview").raise_for_status()
    body = {
        "name": name, "upload": upload, "embed": "auto", "columns": ["text"], "id_column": "id",
        "show": ["text", "remark"], "explore": 10, "known": ["m0"], "forget_negatives": True,
    }  # fmt: skip
    client.post("/api/campaigns", json=body).raise_for_status()


def label_all(client, name: str) -> None:
    while items := client.post(f"/api/campaigns/{name}/ask", json={"k": 7}).raise_for_status().json()["items"]:
        ids = [item["id"] for item in items]
        body = {"ids": ids, "labels": [int(is_positive(each)) for each in ids]}
        client.post(f"/api/campaigns/{name}/tell", json=body).raise_for_status()


def test_no_byte_of_a_negative_is_left_of_two_campaigns_that_were_uploaded(tmp_path, temporary, capsys):
    file = table(tmp_path / "mails.csv")
    folder = tmp_path / "home"
    server = Server(folder)
    try:
        with httpx.Client(base_url=server.url, timeout=120, headers=server_headers(server)) as client:
            # Sent twice before the first use, as people do who were not sure that it had worked.
            send(client, file)
            for name in ("one", "two"):
                make(client, name, send(client, file))
                assert list((folder / ".uploads").iterdir()) == []
            assert left(folder, temporary) == planted()
            for name in ("one", "two"):
                client.get(f"/api/campaigns/{name}/map")
                label_all(client, name)
                stands = client.post(f"/api/campaigns/{name}/forget", json={"now": True}).raise_for_status().json()
                assert (stands["forgotten"], stands["final"], stands["kept"]) == (len(planted()), [], {})
                undone = client.post(f"/api/campaigns/{name}/undo", json={"count": 5})
                assert undone.status_code == 422
                assert "was forgotten" in undone.json()["detail"]
            assert left(folder, temporary) == []
            report = client.get(f"/api/campaigns/{name}/privacy").json()
            assert (report["clean"], report["found"]) == (True, [])
    finally:
        server.stop()
    options = [option for each in planted() for option in ("--marker", each.decode())]
    for name in ("one", "two"):
        assert main(["privacy-check", name, "--home", str(folder), *options]) == 0
        assert "35 of 35 negatives are forgotten" in capsys.readouterr().out
    assert left(folder, temporary) == []
    (folder / ".uploads" / f"{'0' * 32}.csv").write_bytes(file.read_bytes())
    assert main(["privacy-check", "one", "--home", str(folder)]) == 1
    assert f"an upload of this home is left: .uploads/{'0' * 32}.csv" in capsys.readouterr().out


def server_headers(server) -> dict[str, str]:
    """Headers that make somebody the owner, where the server asks for a token."""
    token = getattr(server, "token", None)
    return {"Authorization": f"Bearer {token}"} if token else {}


def test_the_first_server_to_start_erases_uploads_and_the_next_does_not(tmp_path):
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "old.csv").touch()
    (folder / "out-0123").mkdir()
    first = Uploads(folder)
    assert list(folder.iterdir()) == []
    first.fresh(".csv").touch()
    made = first.workspace()
    second = Uploads(folder)
    assert len(list(folder.iterdir())) == 2
    first.discard(made)
    second.close()
    first.close()
    Uploads(folder).close()
    assert list(folder.iterdir()) == []


def test_what_is_not_used_for_an_hour_is_erased_and_what_is_looked_at_stays(tmp_path):
    uploads = Uploads(tmp_path / "uploads")
    looked_at, not_used = uploads.fresh(".csv"), uploads.fresh(".csv")
    for path in (looked_at, not_used):
        path.touch()
        os.utime(path, (time.time() - OLD - 1, time.time() - OLD - 1))
    uploads.used(looked_at)
    uploads.fresh(".csv")
    assert list(uploads.folder.iterdir()) == [looked_at]
    uploads.close()


def test_an_upload_is_erased_when_it_is_not_wanted(tmp_path):
    Workspace(tmp_path / "home").close()
    server = ThreadServer(tmp_path / "home")
    try:
        with httpx.Client(base_url=server.url, timeout=60, headers=server_headers(server)) as client:
            kept = send(client, table(tmp_path / "mails.csv"))
            assert client.delete("/api/uploads/..%2Fstore.sqlite").status_code in (200, 404)
            client.delete("/api/uploads/store.sqlite")
            assert (tmp_path / "home" / "store.sqlite").exists()
            assert client.delete(f"/api/uploads/{kept}").status_code == 200
            assert list((tmp_path / "home" / ".uploads").iterdir()) == []
    finally:
        server.stop()


DROPPED = "([name, text]) => { const all = new DataTransfer(); all.items.add(new File([text], name)); return all; }"
TOLD = "document.querySelector('[aria-label=Forgetting]').textContent"


def test_the_page_forgets_now_and_leaves_no_byte(visit, tmp_path, temporary):
    folder = tmp_path / "home"
    Workspace(folder).close()
    server = ThreadServer(folder)
    file = table(tmp_path / "mails.csv")
    try:
        someone = visit(server.url)
        for name in ("one", "two"):
            someone.go("setup", "")
            for _ in range(2):
                held = someone.page.evaluate_handle(DROPPED, [file.name, file.read_text()])
                someone.page.wait_for_selector(".drop")
                someone.page.dispatch_event(".drop", "drop", {"dataTransfer": held})
                someone.page.wait_for_selector("#new-name")
            someone.page.get_by_text("More", exact=True).click()
            someone.page.get_by_label("Forget negatives once they are final").check()
            someone.page.get_by_label("Known positives").fill("m0")
            someone.page.locator("#new-name").fill(name)
            someone.page.locator("#new-name").press("Enter")
            someone.shown()
            with httpx.Client(base_url=server.url, timeout=120, headers=server_headers(server)) as client:
                label_all(client, name)
            someone.go("progress", name)
            someone.page.on("dialog", lambda dialog: dialog.accept()) if name == "one" else None
            someone.page.locator("#forget-now").click()
            someone.until(lambda: "35 negatives are forgotten" in someone.script(TOLD), "not forgotten")
        someone.until(lambda: left(folder, temporary) == [], "bytes are left")
        assert someone.complaints == []
        with Workspace(folder) as home:
            assert [privacy_check(home, name, planted()).found for name in ("one", "two")] == [[], []]
    finally:
        server.stop()
