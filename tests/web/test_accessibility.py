"""Nothing on any view keeps someone out: axe-core finds nothing serious, every control has a name."""

import pytest
from browsing import DESKTOP, PHONE
from serving import ThreadServer, let_in, make_home, scene

from activecover.web import Client

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

POOL, TRUTH = scene()
NAMELESS = """[...document.querySelectorAll('button, input, select, textarea, a[href], canvas, img, iframe')]
    .filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.alt !== undefined && e.hasAttribute('alt')
        || e.labels?.length || e.title)).map((e) => e.outerHTML)"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A campaign in which something of everything has happened."""
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, POOL, overlap=2, explore=4)
    server = ThreadServer(folder)
    with Client(server.url) as client:
        campaign = client.campaign("mail")
        for who in ("ann", "bob"):
            for item in campaign.ask(12, by=who):
                campaign.tell(item.id, TRUTH[item.id] != (who == "bob" and item.id.endswith("3")), by=who)
        for item in campaign.ask(12, by="bob"):
            campaign.tell(item.id, TRUTH[item.id] != item.id.endswith("7"), by="bob", note="a note")
        for act in (campaign.skip, campaign.mark_unsure):
            act(campaign.ask(by="cy")[0].id, by="cy")
        assert campaign.conflicts()
        client.campaign("mail").status()
    yield server.url
    server.stop()


def serious(page):
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def open_label(someone):
    someone.go("label")
    someone.shown()


def open_list(someone):
    open_label(someone)
    someone.press("l")
    someone.page.wait_for_selector("ol.ten li button")
    someone.press("y")


def open_setup(someone):
    someone.go("setup", "")
    someone.page.wait_for_selector(".drop")


def open_form(someone):
    open_setup(someone)
    table = {"name": "t.csv", "mimeType": "text/csv", "buffer": b"id,text,n\na,one,1\nb,two,2\nc,three,4\n"}
    someone.page.set_input_files("#file", [table])
    someone.page.wait_for_selector("#new-name")
    someone.page.locator("summary").click()


def open_view(view, look):
    def go(someone):
        someone.go(view)
        someone.page.wait_for_selector(look)
        for summary in someone.page.locator("main summary").all():
            summary.click()

    return go


VIEWS = {
    "label": open_label,
    "list": open_list,
    "progress": open_view("progress", "svg.chart"),
    "map": open_view("map", "canvas[data-points]"),
    "history": open_view("history", "tbody tr"),
    "campaigns": open_view("campaigns", "tbody tr"),
    "set up": open_setup,
    "set up, a file chosen": open_form,
}


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit, address, scheme, size):
    someone = visit(address, color_scheme=scheme, viewport=size)
    found = {}
    for name, go in VIEWS.items():
        go(someone)
        assert someone.script(NAMELESS) == [], name
        found[name] = serious(someone.page)
    assert found == {name: [] for name in VIEWS}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_asking_for_a_token_and_being_known(visit, tmp_path, scheme):
    make_home(tmp_path, POOL)
    token = let_in(tmp_path, "ann", "annotator")
    server = ThreadServer(tmp_path)
    try:
        someone = visit(server.url, color_scheme=scheme)
        someone.go("label")
        someone.page.wait_for_selector("dialog[open]")
        assert serious(someone.page) == []
        assert someone.page.locator("#token-words").inner_text() == "Sign in with your token."
        for wrong in ("no such token", "no-such-token"):
            someone.page.keyboard.type(wrong)
            someone.press("Enter")
            someone.page.wait_for_selector("#token-wrong:text-is('That token is not valid.')")
            someone.press("Escape")
            someone.until(lambda: someone.page.locator("dialog[open]").count(), "there is nothing behind it yet")
        assert serious(someone.page) == []
        someone.page.locator("#token-value").fill("")
        someone.page.keyboard.type(token)
        someone.press("Enter")
        someone.page.wait_for_selector("article.item[data-id]")
        assert someone.page.locator("nav a").all_inner_texts() == ["Label", "Campaigns"]
        assert someone.page.locator("#known").inner_text() == "ann"
        assert not someone.page.locator("#who").is_visible()
        assert serious(someone.page) == []
        (cookie,) = someone.context.cookies()
        someone.page.get_by_role("button", name="Sign out").click()
        someone.page.wait_for_selector("dialog[open]")
        assert someone.context.cookies() == []
        # It is of no use to anyone who has kept it.
        someone.context.add_cookies([cookie])
        someone.page.reload()
        ended = "#token-words:text-is('Your session has ended. Sign in again with your token.')"
        someone.page.wait_for_selector(ended)
    finally:
        server.stop()
