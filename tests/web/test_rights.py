"""Every route of the app with everybody who could ask: who is let in, who is told no, and for whom nothing is there."""

from __future__ import annotations

import pytest
from serving import ThreadServer, httpx, let_in, make_home, scene

POOL, TRUTH = scene()

#: Somebody's role on the whole server, and in single campaigns; of "nobody" not even a token.
PEOPLE = {
    "nobody": (None, {}),
    "owner": ("owner", {}),
    "adjudicator": ("adjudicator", {}),
    "annotator": ("annotator", {}),
    "reader": ("reader", {}),
    "owner of mail": (None, {"mail": "owner"}),
    "adjudicator of mail": (None, {"mail": "adjudicator"}),
    "annotator of mail": (None, {"mail": "annotator"}),
    "reader of mail": (None, {"mail": "reader"}),
    "owner of another campaign": (None, {"pair": "owner"}),
    "without any role": (None, {}),
    "reader who may adjudicate in mail": ("reader", {"mail": "adjudicator"}),
    "annotator who may read in mail": ("annotator", {"mail": "reader"}),
}
#: Which roles may do what in a campaign.
IN_CAMPAIGN = {
    "label": {"annotator", "adjudicator", "owner"},
    "look": {"reader", "adjudicator", "owner"},
    "see": {"reader", "annotator", "adjudicator", "owner"},
    "settle": {"adjudicator", "owner"},
    "keep": {"owner"},
}
ONE = "/api/campaigns/{name}"
#: For every route: what it needs, the rest of a request, and the answers to an owner.
ROUTES = {
    ("GET", "/"): ("open", {}, {200}),
    ("GET", "/health"): ("open", {}, {200}),
    ("GET", "/api/openapi.json"): ("open", {}, {200}),
    ("GET", "/metrics"): ("server", {}, {200}),
    ("GET", "/api/me"): ("known", {}, {200}),
    ("POST", "/api/login"): ("known", {}, {200}),
    ("POST", "/api/logout"): ("known", {}, {200}),
    ("GET", "/api/campaigns"): ("known", {}, {200}),
    ("POST", "/api/campaigns"): ("server", {"json": {"name": "x", "upload": "x"}}, {404}),
    ("POST", "/api/restore"): ("server", {"json": {"upload": "x"}}, {404}),
    ("POST", "/api/uploads"): ("server", {"params": {"name": "a.csv"}, "content": b"x\n1\n"}, {201}),
    ("GET", "/api/uploads/{upload}/preview"): ("server", {}, {404}),
    ("DELETE", "/api/uploads/{upload}"): ("server", {}, {200, 404}),
    ("GET", "/api/learners"): ("server", {}, {200}),
    ("GET", "/api/rules"): ("server", {}, {200}),
    ("GET", "/api/people"): ("server", {}, {200}),
    ("POST", "/api/people"): ("server", {"json": {"name": " "}}, {422}),
    ("DELETE", "/api/people"): ("server", {"params": {"name": "nix"}}, {422}),
    ("POST", "/api/people/rotate"): ("server", {"json": {"name": "nix"}}, {422}),
    ("PUT", "/api/people/role"): ("server", {"json": {"name": "nix", "role": "owner"}}, {422}),
    ("GET", f"{ONE}/rights"): ("keep", {}, {200}),
    ("PUT", f"{ONE}/rights"): ("keep", {"json": {"name": "nix", "role": "owner"}}, {422}),
    ("DELETE", ONE): ("keep", {"params": {"confirm": "no"}}, {422}),
    ("GET", f"{ONE}/forgetting"): ("keep", {}, {200}),
    ("POST", f"{ONE}/learner"): ("keep", {"json": {"learner": "nobody"}}, {422}),
    ("POST", f"{ONE}/forget"): ("keep", {"json": {"now": True}}, {422}),
    ("GET", f"{ONE}/privacy"): ("keep all", {}, {422}),
    ("GET", f"{ONE}/archive"): ("keep", {}, {200}),
    ("PUT", f"{ONE}/template"): ("keep", {"json": {"template": None}}, {200}),
    ("POST", f"{ONE}/ask"): ("label", {"json": {}}, {200}),
    ("POST", f"{ONE}/answer"): ("label", {"json": {"id": "nix", "label": True}}, {422}),
    ("GET", f"{ONE}/ahead"): ("label", {"params": {"id": "m/1"}}, {200}),
    ("POST", f"{ONE}/tell"): ("label", {"json": {"ids": ["nix"], "labels": [True]}}, {422}),
    ("POST", f"{ONE}/skip"): ("label", {"json": {"ids": ["nix"]}}, {422}),
    ("POST", f"{ONE}/unsure"): ("label", {"json": {"ids": ["nix"]}}, {422}),
    ("POST", f"{ONE}/release"): ("label", {"json": {"ids": ["nix"]}}, {422}),
    ("POST", f"{ONE}/undo"): ("label", {"json": {"by": "me"}}, {200}),
    ("GET", f"{ONE}/image"): ("see", {"params": {"id": "m/1"}}, {422}),
    ("GET", f"{ONE}/frame"): ("see", {"params": {"id": "m/1"}}, {422}),
    ("POST", f"{ONE}/adjudicate"): ("settle", {"json": {"id": "m/1", "label": True}}, {422}),
    ("POST", f"{ONE}/confirm"): ("settle", {"json": {"ids": ["m/1"]}}, {422}),
    ("POST", f"{ONE}/ungroup"): ("settle", {"json": {"ids": ["m/1"]}}, {422}),
    ("GET", f"{ONE}/item"): ("look", {"params": {"id": "m/1"}}, {200}),
    **{
        ("GET", f"{ONE}/{part}"): ("look", {}, {200})
        for part in ("status", "progress", "assess", "certificate", "trace", "records", "labels", "history", "items",
                     "conflicts", "agreement", "export", "map", "map/states", "suspicious")
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    make_home(folder, POOL)
    make_home(folder, POOL, "pair", overlap=2, explore=0, known=["m/0"])
    tokens = {name: let_in(folder, name, role, **rights) for name, (role, rights) in PEOPLE.items() if name != "nobody"}
    server = ThreadServer(folder)
    yield server, tokens
    server.stop()


def send(team, who, method, path, rest, campaign="mail"):
    server, tokens = team
    headers = {"Authorization": f"Bearer {tokens[who]}"} if who in tokens else {}
    address = path.replace("{name}", campaign).replace("{upload}", "0" * 32 + ".csv")
    return httpx.request(method, server.url + address, headers=headers, timeout=60, **rest)


def role_in_mail(who):
    role, rights = PEOPLE[who]
    order = (None, "reader", "annotator", "adjudicator", "owner")
    return max(role, rights.get("mail"), key=order.index)


def expected(who, needs):
    """What somebody is to get of a route: the answer, 401, 403, or 404 as for a campaign that is not there."""
    if needs == "open":
        return "the answer"
    if who == "nobody":
        return 401
    if needs == "known":
        return "the answer"
    if needs == "server":
        return "the answer" if PEOPLE[who][0] == "owner" else 403
    role = role_in_mail(who)
    if role is None:
        return 404
    if needs == "keep all":  # in a campaign, and about all of them
        return "the answer" if PEOPLE[who][0] == "owner" else 403
    return "the answer" if role in IN_CAMPAIGN[needs] else 403


def outcome(answer):
    """Whether somebody was let in, whatever then was wrong with the request."""
    detail = answer.json()["detail"] if answer.headers["content-type"] == "application/problem+json" else ""
    for status, words in ((401, "wants a token"), (403, "this is not for"), (403, "for owners"), (404, "no campaign")):
        if answer.status_code == status and words in detail:
            return status
    return "the answer"


def test_every_route_of_the_app_is_in_the_table(team):
    found = {(method, route.path) for route in routes_of(team[0].app.app) for method in route.methods}
    assert found - {("HEAD", path) for _, path in found} == set(ROUTES), "who may use it?"


def routes_of(place):
    """The routes of an app or a router; those of a router that was included may be in it or be there by themselves."""
    for route in place.routes:
        inside = getattr(route, "original_router", None)
        if inside is not None:
            yield from routes_of(inside)
        elif getattr(route, "methods", None):
            yield route
        else:
            assert route.path == "/static", "nothing else is mounted"


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route).replace("/", " "))
def test_who_is_let_in(team, route):
    needs, rest, good = ROUTES[route]
    for who in PEOPLE:
        answer = send(team, who, *route, rest)
        assert outcome(answer) == expected(who, needs), (who, answer.text)
        if who == "owner":
            assert answer.status_code in good, answer.text
        assert answer.status_code < 500


@pytest.mark.parametrize("who", ["owner of another campaign", "without any role"])
def test_a_campaign_that_is_not_for_someone_is_as_if_it_were_not_there(team, who):
    assert "mail" not in send(team, who, "GET", "/api/campaigns", {}).text
    for (method, path), (_, rest, _) in ROUTES.items():
        if "{name}" not in path:
            continue
        for body in (rest, {**rest, "content": b"{no json", "json": None} if "json" in rest else rest):
            there, not_there = (send(team, who, method, path, body, campaign) for campaign in ("mail", "nowt"))
            assert there.status_code == not_there.status_code, path
            assert plain(there) == plain(not_there).replace("nowt", "mail"), path


def plain(answer):
    return answer.text.replace(answer.headers["X-Request-ID"], "")


def test_a_list_of_campaigns_has_those_for_someone_and_their_role_there(team):
    def seen(who):
        return {one["name"]: one["role"] for one in send(team, who, "GET", "/api/campaigns", {}).json()["campaigns"]}

    assert seen("reader who may adjudicate in mail") == {"mail": "adjudicator", "pair": "reader"}
    assert seen("owner of another campaign") == {"pair": "owner"}
    assert seen("without any role") == {}


def test_rights_are_given_and_taken_while_the_server_runs(team):
    server, tokens = team
    owner = {"headers": {"Authorization": f"Bearer {tokens['owner']}"}}
    made = httpx.post(f"{server.url}/api/people", json={"name": "new", "rights": {"pair": "annotator"}}, **owner)
    assert made.status_code == 201
    again = httpx.post(f"{server.url}/api/people", json={"name": "new"}, **owner)
    assert again.status_code == 409

    def status(token, campaign, part="status"):
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"{server.url}/api/campaigns/{campaign}/{part}", headers=headers, timeout=60).status_code

    token = made.json()["token"]
    assert (status(token, "pair"), status(token, "mail")) == (403, 404)
    for role, pair in (("reader", 200), ("annotator", 403), (None, 404)):
        put = httpx.put(f"{server.url}/api/campaigns/pair/rights", json={"name": "new", "role": role}, **owner)
        assert put.status_code == 200
        assert status(token, "pair") == pair
    # The owner of a campaign lets others into that one, and no further.
    theirs = {"headers": {"Authorization": f"Bearer {tokens['owner of another campaign']}"}}
    assert httpx.put(
        f"{server.url}/api/campaigns/pair/rights", json={"name": "new", "role": "reader"}, **theirs
    ).is_success
    assert status(token, "pair") == 200
    assert (
        httpx.put(
            f"{server.url}/api/campaigns/mail/rights", json={"name": "new", "role": "reader"}, **theirs
        ).status_code
        == 404
    )
    listed = httpx.get(f"{server.url}/api/campaigns/pair/rights", **theirs).json()["rights"]
    assert {"name": "new", "role": "reader", "granted": "reader"} in listed
    put = httpx.put(f"{server.url}/api/people/role", json={"name": "new", "role": "reader"}, **owner)
    assert put.status_code == 200
    assert status(token, "mail") == 200
    rotated = httpx.post(f"{server.url}/api/people/rotate", json={"name": "new"}, **owner).json()["token"]
    assert (status(token, "mail"), status(rotated, "mail")) == (401, 200)
    assert httpx.delete(f"{server.url}/api/people", params={"name": "new"}, **owner).is_success
    assert status(rotated, "mail") == 401
    assert "new" not in [one["name"] for one in httpx.get(f"{server.url}/api/people", **owner).json()["people"]]
