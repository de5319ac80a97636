"""The page in a real Chromium, by keyboard alone."""

import shutil
import time

import pytest
from serving import ThreadServer, make_home, scene

from activecover.web import Client

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

TRUTH = scene()[1]


def find_chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None), shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser():
    chromium, driver = find_chromium()
    if chromium is None or driver is None:
        pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,850",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


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


def press(browser, *keys):
    ActionChains(browser).send_keys(*keys).perform()


def until(browser, condition, what, seconds=30):
    return WebDriverWait(browser, seconds, poll_frequency=0.02).until(lambda _: condition(), what)


def script(browser, code):
    return browser.execute_script(f"return {code}")


def shown(browser, other_than=None):
    """The id of the item on the screen, once it is another."""
    look = "document.querySelector('article.item')?.dataset.id ?? null"
    until(browser, lambda: script(browser, look) not in (None, other_than), "no item appeared")
    return script(browser, look)


def go(browser, running, view, name="mail"):
    browser.get("about:blank")
    browser.get(f"{running.url}/#/{view}/{name}")


def complaints(browser):
    """What the browser has to say of broken rules and uncaught errors."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_labelling_by_keyboard_alone(browser, running, campaign):
    go(browser, running, "label")
    pressed, item = {}, None
    for number in range(20):
        item = shown(browser, item)
        assert script(browser, "document.activeElement.dataset.id") == item, "a screen reader must be at the item"
        pressed[item] = TRUTH[item]
        press(browser, ("y" if number % 2 else Keys.ARROW_RIGHT) if TRUTH[item] else "n")
    last = item
    until(browser, lambda: len(campaign.labels()) == 20, "not all labels arrived")
    assert campaign.labels() == pressed
    shown(browser, last)
    press(browser, "u")
    until(browser, lambda: shown(browser) == last, "the undone item is not back")
    until(browser, lambda: len(campaign.labels()) == 19, "the label was not taken back")
    press(browser, "?")
    item = shown(browser, last)
    press(browser, "s")
    shown(browser, item)
    assert (campaign.status().unsure, campaign.status().skipped) == (1, 1)
    assert complaints(browser) == []


def test_a_reload_loses_nothing(browser, running, campaign):
    go(browser, running, "label")
    item, before = shown(browser), campaign.labels()
    browser.refresh()
    assert shown(browser) == item
    assert campaign.labels() == before


def test_the_next_item_does_not_wait_for_the_server(browser, running, campaign):
    """With every answer delayed by 300 ms the next item is there long before the answer."""
    go(browser, running, "label")
    item = shown(browser)
    browser.set_network_conditions(latency=300, download_throughput=10**8, upload_throughput=10**8)
    try:
        for _ in range(6):
            time.sleep(1.5)  # a person reads
            press(browser, "y" if TRUTH[item] else "n")
            item = shown(browser, item)
    finally:
        browser.delete_network_conditions()
    waited = sorted(script(browser, "window.activecoverLatency"))
    assert len(waited) >= 4, "items were not foreseen"
    assert waited[len(waited) // 2] < 100
    until(browser, lambda: script(browser, "document.querySelector('article.item')?.dataset.id"), "no item is left")


def test_ten_at_once(browser, running, campaign):
    before = len(campaign.labels())
    go(browser, running, "label")
    shown(browser)
    press(browser, "l")
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "ol.ten li")) == 10, "no list of ten")
    names = script(browser, "[...document.querySelectorAll('ol.ten li')].map((row) => row.dataset.id)")
    for name in names:
        press(browser, "y" if TRUTH[name] else "n")
    press(browser, Keys.ENTER)
    until(browser, lambda: len(campaign.labels()) == before + 10, "the answers did not arrive")
    assert {name: campaign.labels()[name] for name in names} == {name: TRUTH[name] for name in names}
    press(browser, "l")
    shown(browser)


def test_progress_and_map_show(browser, running, campaign):
    go(browser, running, "progress")
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "svg.chart")) >= 2, "no charts")
    labels = campaign.status().labelled
    tiles = "document.querySelector('.tiles').textContent"
    assert f"{labels}labels spent" in script(browser, tiles)
    assert script(browser, "document.querySelector('svg.chart').ariaLabel").startswith("Positives found")
    open_item = next(name for name in TRUTH if name not in campaign.labels() and TRUTH[name])
    campaign.tell(open_item, True, by="script")
    until(browser, lambda: f"{labels + 1}labels spent" in script(browser, tiles), "not live")
    go(browser, running, "map")
    until(browser, lambda: script(browser, "document.querySelector('canvas')?.dataset.points") == "120", "no map")
    until(browser, lambda: "positive" in script(browser, "document.querySelector('canvas').ariaLabel"), "no states")
    assert complaints(browser) == []


def test_history_changes_a_decision(browser, running, campaign):
    name, label = next(iter(campaign.labels().items()))
    go(browser, running, "history")
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "tbody tr"), "no history")
    search = browser.find_element(By.CSS_SELECTOR, "input[type=search]")
    search.send_keys(name)
    row = f"tr[data-id='{name}'] button"
    until(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) < 12, "the search found nothing")
    browser.find_element(By.CSS_SELECTOR, row).send_keys(Keys.ENTER)
    until(browser, lambda: campaign.labels()[name] is not label, "the decision did not change")


def test_a_campaign_from_a_dropped_file_and_hostile_contents(browser, running, tmp_path):
    table = tmp_path / "<b>cars.csv"
    lines = [f"c{row},{900 + 37 * row % 11},<img src=x onerror=\"document.title='broken'\">" for row in range(12)]
    table.write_text("id,weight,<i>note\n" + "\n".join(line.replace('"', "") for line in lines))
    go(browser, running, "setup", "")
    until(browser, lambda: browser.find_elements(By.ID, "file"), "no place for a file")
    browser.find_element(By.ID, "file").send_keys(str(table))
    until(browser, lambda: browser.find_elements(By.ID, "new-name"), "no form")
    assert "<img src=x" in browser.find_element(By.TAG_NAME, "table").text
    field = browser.find_element(By.ID, "new-name")
    field.clear()
    field.send_keys("cars & <i>more", Keys.ENTER)
    shown(browser)
    assert script(browser, "document.querySelectorAll('main img, main i').length") == 0
    assert "broken" not in browser.title
    assert "cars & <i>more" in browser.title
    assert complaints(browser) == []


def test_phone_sized_screens_need_no_sideways_scrolling(browser, running):
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for view in ("label", "progress", "map", "history"):
            go(browser, running, view)
            until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "main .sheet"), f"{view}: nothing shows")
            assert script(browser, "document.documentElement.scrollWidth") <= 360, view
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_control_has_a_name(browser, running):
    nameless = """[...document.querySelectorAll('button, input, select, textarea, a[href], canvas, img, iframe')]
        .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.alt !== undefined && e.hasAttribute('alt')
            || e.labels?.length || e.title)).map((e) => e.outerHTML)"""
    for view in ("label", "progress", "map", "history", "setup", "campaigns"):
        go(browser, running, view)
        until(
            browser, lambda: browser.find_elements(By.CSS_SELECTOR, "main .sheet, main .drop"), f"{view}: nothing shows"
        )
        assert script(browser, nameless) == [], view
