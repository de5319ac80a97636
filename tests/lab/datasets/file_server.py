"""A server of files for the tests of downloads, which can misbehave."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from activecover.errors import InputError
from activecover.lab.datasets import Download, fetch_files

#: More than the client reads at once, so that a cut comes in the middle.
BODY = np.random.default_rng(0).bytes(700_000)


@dataclass
class Server:
    """What is served, how badly, and what was asked for and sent."""

    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    ranges: bool = True
    lengths: bool = True
    chunked: bool = False
    pause: float = 0.0
    length: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0
    url: str = ""

    def download(self, file: str, content: bytes | None = None, digest: str = "", **more: Any) -> Download:
        """Serve a file; what to ask for is the result."""
        if content is not None:
            self.files[f"/{file}"] = content
        found = hashlib.sha256(content or b"").hexdigest()
        return Download(more.pop("to", file), f"{self.url}/{file}", digest or f"sha256:{found}", **more)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) if folder.exists() else []


def refused(downloads: Download | list[Download], folder: Path, match: str) -> str:
    with pytest.raises(InputError, match=match) as caught:
        fetch_files(downloads if isinstance(downloads, list) else [downloads], folder)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)
