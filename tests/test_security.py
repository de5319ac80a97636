"""The threat model names tests that exist, and is found from where people look."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "security.md"


def test_every_promise_names_tests_that_exist():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    promises = [row for row in rows if row.count("|") == 4 and not row.startswith("| promised")]
    assert len(promises) > 25
    for row in promises:
        tests = re.findall(r"`(tests/[\w/]+\.py)`", row.rsplit("|", 2)[1])
        assert tests, row
        assert all((ROOT / name).is_file() and "def test_" in (ROOT / name).read_text() for name in tests), row


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("README.md", "SECURITY.md"),
        ("SECURITY.md", "docs/security.md"),
        ("docs/serve.md", "security.md"),
        ("docs/security.md", "../SECURITY.md"),
    ],
)
def test_pages_lead_to_it(page, link):
    path = ROOT / page
    assert f"]({link})" in path.read_text(encoding="utf-8")
    assert (path.parent / link).resolve().is_file()


def test_nobody_is_sent_to_an_address_that_is_made_up():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert not re.search(r"[\w.]+@[\w.]+|https?://", text)
