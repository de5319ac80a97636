"""The whole way in a real Chromium: from an empty store to an export that equals what was pressed and sent."""

import csv

import pytest
from serving import ThreadServer

from activecover.web import Client
from activecover.workspace import Workspace

#: Labelled by keyboard; the rest by a script.
PRESSED = 200
#: What a browser makes of a file that is dropped.
DROPPED = "([name, text]) => { const all = new DataTransfer(); all.items.add(new File([text], name)); return all; }"


@pytest.fixture
def running(tmp_path):
    Workspace(tmp_path / "home").close()
    server = ThreadServer(tmp_path / "home")
    yield server
    server.stop()


def choose(someone, label, value):
    someone.page.get_by_label(label, exact=False).first.select_option(value)


def set_up(someone, file):
    someone.go("setup", "")
    someone.page.wait_for_selector(".drop")
    held = someone.page.evaluate_handle(DROPPED, [file.name, file.read_text("utf-8")])
    someone.page.dispatch_event(".drop", "drop", {"dataTransfer": held})
    someone.page.wait_for_selector("#new-name")
    # The file has no column names: then they are 1 (the label) and 2 (the text).
    someone.page.get_by_label("The first line has the column names").uncheck()
    someone.page.wait_for_selector("th:text-is('2')")
    choose(someone, "Column with known labels", "1")
    choose(someone, "Stop once it is certain", "0.8@0.95")
    someone.page.get_by_role("group", name="Columns to make vectors of").get_by_label("2").check()
    someone.page.locator("#new-name").fill("sms")
    someone.page.locator("#new-name").press("Enter")


def test_from_a_dropped_file_to_the_export(visit, running, data_dir, tmp_path):
    file = data_dir / "pools" / "sms_spam.tsv"
    lines = file.read_text("utf-8").splitlines()
    truth = {str(row): line.startswith("spam\t") for row, line in enumerate(lines)}
    someone = visit(running.url)
    set_up(someone, file)
    pressed, item = {}, None
    for number in range(PRESSED):
        item = someone.shown(item)
        pressed[item] = truth[item]
        someone.press("y" if truth[item] else "n")
        if number == PRESSED // 2:
            after = someone.shown(item)
            with Client(running.url) as client:
                someone.until(lambda: client.campaign("sms").labels() == pressed, "not all labels arrived")
            someone.page.reload()
            assert someone.shown() == after
            item = None
    someone.shown(item)
    campaign = Client(running.url).campaign("sms")
    someone.until(lambda: campaign.labels() == pressed, "not all labels arrived")
    for _ in range(3):
        someone.press("u")
        someone.until(lambda: campaign.labels().keys() == set(list(pressed)[: len(pressed) - 1]), "not undone")
        pressed.popitem()
    someone.go("progress", "sms")
    tiles = "document.querySelector('.tiles')?.textContent ?? ''"
    someone.until(lambda: f"{len(pressed)}labels spent" in someone.script(tiles), "progress does not show")
    someone.go("map", "sms")
    points = "document.querySelector('canvas')?.dataset.points"
    someone.until(lambda: someone.script(points) == str(len(lines)), "the map does not show")
    someone.go("progress", "sms")
    sent = {}
    while items := campaign.ask(50, by="script"):
        answers = {item.id: truth[item.id] for item in items}
        campaign.tell(list(answers), list(answers.values()), by="script")
        sent.update(answers)
    said = someone.page.wait_for_selector("#stopped").inner_text()
    assert "certified" in said or "every item is labelled" in said
    certificate = campaign.certificate()
    found, positives = sum({**pressed, **sent}.values()), sum(truth.values())
    assert certificate.certified
    print(f"{len(pressed) + len(sent)} labels of {len(lines)}: {found} of {positives} found; {said}")
    someone.go("history", "sms")
    with someone.page.expect_download() as waiting:
        someone.page.get_by_role("button", name="Export").click()
    waiting.value.save_as(tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as text:
        exported = {row["id"]: row["label"] in ("1", "True", "yes") for row in csv.DictReader(text)}
    assert exported == campaign.labels()
    assert exported == {**pressed, **sent}
    assert someone.complaints == []
