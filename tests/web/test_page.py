"""The page in a real Chromium, by keyboard alone."""

import pytest
from browsing import PHONE
from serving import ThreadServer, make_home, scene

from activecover.web import Client

TRUTH = scene()[1]
VIEWS = ("label", "progress", "map", "history", "setup", "campaigns")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, scene()[0])
    server = ThreadServer(folder)
    yield server
    server.stop()


@pytest.fixture
def campaign(running):
    with Client(running.url) as client:
        yield client.campaign("mail")


@pytest.fixture
def someone(visit, running):
    return visit(running.url)


def test_labelling_by_keyboard_alone(someone, campaign):
    someone.go("label")
    pressed, item = {}, None
    for number in range(20):
        item = someone.shown(item)
        assert someone.script("document.activeElement.dataset.id") == item, "a screen reader must be at the item"
        pressed[item] = TRUTH[item]
        someone.press(("y" if number % 2 else "ArrowRight") if TRUTH[item] else "n")
    last = item
    someone.until(lambda: len(campaign.labels()) == 20, "not all labels arrived")
    assert campaign.labels() == pressed
    someone.shown(last)
    someone.press("u")
    someone.until(lambda: someone.shown() == last, "the undone item is not back")
    someone.until(lambda: len(campaign.labels()) == 19, "the label was not taken back")
    someone.press("?")
    item = someone.shown(last)
    someone.press("s")
    someone.shown(item)
    someone.until(lambda: campaign.status().skipped == 1, "the item was not put aside")
    assert campaign.status().unsure == 1
    assert someone.complaints == []


def test_a_reload_loses_nothing(someone, campaign):
    someone.go("label")
    item, before = someone.shown(), campaign.labels()
    someone.page.reload()
    assert someone.shown() == item
    assert campaign.labels() == before


def test_ten_at_once(someone, campaign):
    before = len(campaign.labels())
    someone.go("label")
    someone.shown()
    someone.press("l")
    someone.until(lambda: someone.page.locator("ol.ten li").count() == 10, "no list of ten")
    names = someone.script("[...document.querySelectorAll('ol.ten li')].map((row) => row.dataset.id)")
    for name in names:
        someone.press("y" if TRUTH[name] else "n")
    someone.press("Enter")
    someone.until(lambda: len(campaign.labels()) == before + 10, "the answers did not arrive")
    assert {name: campaign.labels()[name] for name in names} == {name: TRUTH[name] for name in names}
    someone.press("l")
    someone.shown()
    assert someone.complaints == []


def test_progress_and_map_show(someone, campaign):
    someone.go("progress")
    someone.until(lambda: someone.page.locator("svg.chart").count() >= 2, "no charts")
    labels = campaign.status().labelled
    tiles = "document.querySelector('.tiles').textContent"
    assert f"{labels}labels spent" in someone.script(tiles)
    assert someone.script("document.querySelector('svg.chart').ariaLabel").startswith("Positives found")
    open_item = next(name for name in TRUTH if name not in campaign.labels() and TRUTH[name])
    campaign.tell(open_item, True, by="script")
    someone.until(lambda: f"{labels + 1}labels spent" in someone.script(tiles), "not live")
    someone.go("map")
    points = "document.querySelector('canvas')?.dataset.points"
    someone.until(lambda: someone.script(points) == "120", "no map")
    name = "document.querySelector('canvas').ariaLabel"
    someone.until(lambda: "positive" in someone.script(name), "no states")
    assert someone.complaints == []


def test_history_changes_a_decision(someone, campaign):
    name, label = next(iter(campaign.labels().items()))
    someone.go("history")
    someone.until(lambda: someone.page.locator("tbody tr").count(), "no history")
    someone.page.locator("input[type=search]").fill(name)
    someone.until(lambda: someone.page.locator("tbody tr").count() < 12, "the search found nothing")
    someone.page.locator(f"tr[data-id='{name}'] button").press("Enter")
    someone.until(lambda: campaign.labels()[name] is not label, "the decision did not change")
    assert someone.complaints == []


def test_a_campaign_from_a_dropped_file_and_hostile_contents(someone, tmp_path):
    table = tmp_path / "<b>cars.csv"
    lines = [f"c{row},{900 + 37 * row % 11},<img src=x onerror=document.title=1>" for row in range(12)]
    table.write_text("id,weight,<i>note\n" + "\n".join(lines))
    someone.go("setup", "")
    someone.page.set_input_files("#file", str(table))
    someone.until(lambda: someone.page.locator("#new-name").count(), "no form")
    assert "<img src=x" in someone.page.locator("table").inner_text()
    field = someone.page.locator("#new-name")
    field.fill("cars & <i>more")
    field.press("Enter")
    someone.shown()
    assert someone.script("document.querySelectorAll('main img, main i').length") == 0
    assert "cars & <i>more" in someone.page.title()
    assert someone.complaints == []


def test_phone_sized_screens_need_no_sideways_scrolling(visit, running):
    someone = visit(running.url, viewport={**PHONE, "width": 360}, is_mobile=True, has_touch=True)
    for view in VIEWS:
        someone.go(view)
        look = "main .sheet, main .drop"
        someone.until(lambda look=look: someone.page.locator(look).count(), f"{view}: nothing shows")
        assert someone.script("document.documentElement.scrollWidth") <= 360, view
