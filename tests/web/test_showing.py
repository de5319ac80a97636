"""How items look: images, molecules, templates and long texts, whoever began the campaign."""

import io
import zipfile

import pytest
from serving import ThreadServer, httpx

from activecover.cli import main
from activecover.web import Client
from activecover.web._show import draw_molecule
from activecover.workspace import Workspace

image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "OC(=O)c1ccccc1O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "CCO", "c1ccccc1O"]


def pictures(path, count=6):
    """A zip of squares in different greys, one of them large."""
    with zipfile.ZipFile(path, "w") as packed:
        for number in range(count):
            side = 2000 if number == 0 else 30
            data = io.BytesIO()
            image.new("RGB", (side, side), (40 * number, 40 * number, 40 * number)).save(data, "PNG")
            packed.writestr(f"p{number}.png", data.getvalue())


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Campaigns that were begun on the command line."""
    folder = tmp_path_factory.mktemp("home")
    work = tmp_path_factory.mktemp("files")
    pictures(work / "p.zip")
    (work / "m.csv").write_text("id,smiles\n" + "\n".join(f"m{n},{text}" for n, text in enumerate(SMILES)))
    begin = ["--home", str(folder), "--explore", "0"]
    assert main(["new", "pictures", "--pool", str(work / "p.zip"), "--known", "p0.png", *begin]) == 0
    assert (
        main(["new", "secret", "--pool", str(work / "p.zip"), "--known", "p0.png", "--forget-negatives", *begin]) == 0
    )
    assert main(["new", "molecules", "--pool", str(work / "m.csv"), "--id-col", "id", "--known", "m0", *begin]) == 0
    (work / "p.zip").unlink()
    server = ThreadServer(folder)
    yield server
    server.stop()


@pytest.fixture
def http(running):
    with httpx.Client(base_url=running.url, timeout=60) as client:
        yield client


def test_images_are_shown_though_their_file_is_gone(http, visit, running):
    (item,) = http.post("/api/campaigns/pictures/ask", json={}).json()["items"]
    assert item["view"]["images"] == ["image"]
    for shown in (item, item["beside"]):
        answer = http.get(shown["content"]["image"])
        assert answer.headers["content-type"] == "image/png"
        assert max(image.open(io.BytesIO(answer.content)).size) <= 1024
    someone = visit(running.url)
    someone.go("label", "pictures")
    someone.shown()
    loaded = "[...document.querySelectorAll('.desk:not([hidden]) img.picture')].map((one) => one.complete && one.naturalWidth)"
    someone.until(lambda: len(someone.script(loaded)) == 2 and all(someone.script(loaded)), "the images do not show")
    assert someone.complaints == []


def test_images_travel_and_are_forgotten_with_their_row(http, running, tmp_path):
    with Client(running.url) as client:
        campaign = client.campaign("secret")
        item = campaign.ask()[0].id
        address = http.get("/api/campaigns/secret/item", params={"id": item}).json()["content"]["image"]
        before = http.get(address).content
        campaign.tell([item, *(f"p{n}.png" for n in range(1, 6) if f"p{n}.png" != item)], [False] * 5)
        campaign.archive(tmp_path / "a.zip")
    running.desk.let_go("secret")
    with Workspace(running.folder) as home:
        home.forget("secret", window=0)
    assert http.get(address).status_code == 422
    # Of six rows one is not negative; its picture alone is left.
    kept = b"".join(path.read_bytes() for path in (running.folder / "own").rglob("*") if path.is_file())
    assert before
    assert kept.count(b"data:image/") == 1


def test_molecules_are_drawn(http):
    shown = {}
    while items := http.post("/api/campaigns/molecules/ask", json={}).json()["items"]:
        shown[items[0]["content"]["smiles"]] = items[0]["view"]["molecule"]
        http.post("/api/campaigns/molecules/tell", json={"ids": [items[0]["id"]], "labels": [False]})
    assert shown
    assert all("<svg" in drawn for drawn in shown.values())
    assert draw_molecule("not a molecule") is None


def test_a_template_shows_in_a_frame_without_rights(http, visit, running):
    template = "<style>b { color: green }</style><b>{{ file }}</b><img src='{{ image }}'>"
    assert http.put("/api/campaigns/pictures/template", json={"template": template}).status_code == 200
    someone = visit(running.url)
    someone.go("label", "pictures")
    item = someone.shown()
    # Items for the next answers wait in hidden desks, with frames of their own.
    frames = someone.page.locator(".desk:not([hidden]) iframe")
    assert frames.count() == 2
    assert [one.get_attribute("sandbox") for one in frames.all()] == ["", ""]
    written = [frames.nth(place).content_frame.locator("b").inner_text() for place in range(2)]
    assert written == [item, "p0.png"]
    http.put("/api/campaigns/pictures/template", json={"template": None})
