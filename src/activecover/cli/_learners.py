"""``activecover learners``: list the registered learners."""

from __future__ import annotations

from activecover.cli import _options as options
from activecover.cli._show import print_json, print_table
from activecover.learners import LEARNERS


def learners(json: options.Json = False) -> None:
    """List the learners, and what each learns from."""
    rows = [(entry.name, entry.code or None, entry.negatives, entry.summary, entry.version) for entry in LEARNERS]
    if json:
        print_json(
            [
                {"name": name, "code": code, "negatives": negatives, "summary": summary, "version": version}
                for name, code, negatives, summary, version in rows
            ]
        )
        return
    print_table("", ["learner", "code", "negatives", "what it asks for"], [row[:4] for row in rows])
