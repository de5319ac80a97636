"""The manifest of an archive: what it may say, in every format that was ever written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from activecover.errors import LARGEST_COUNT, InputError, StoreError
from activecover.store import check_name
from activecover.strict import JsonLimits, read_json

FORMAT = 2
MANIFEST, SIGNED, EVENTS, OUTSIDE, POOL = "manifest.json", "signature.json", "events.jsonl", "outside.npz", "pool/"
#: Before the manifest when it is signed, so that no signature over anything else can stand for it.
PREFIX = b"activecover archive\n"
LIMITS = JsonLimits(size=1 << 22, values=100_000, depth=8)
_KIND = "activecover archive"
_HASH = re.compile(r"[0-9a-f]{64}")
_LONGEST_TEMPLATE = 1 << 20


def _is_count(value: object) -> bool:
    return value is None or (type(value) is int and 1 <= value <= LARGEST_COUNT)


def _is_seconds(value: object) -> bool:
    return value is None or (
        isinstance(value, int | float)
        and type(value) is not bool
        and 1 <= value <= LARGEST_COUNT
        and math.isfinite(value)
    )


def _is_template(value: object) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= _LONGEST_TEMPLATE)


#: What a campaign takes along besides its events and its pool; anything else belongs to the home that it is in.
_SETTINGS: dict[str, Callable[[object], bool]] = {
    "own": lambda value: type(value) is bool,
    "lease": _is_seconds,
    "budget": _is_count,
    "target": _is_count,
    "template": _is_template,
}
#: What format 1 said besides: places in the home that it came from, which mean nothing in another one.
_PLACES: dict[str, Callable[[object], bool]] = {
    "pool": lambda value: isinstance(value, str),
    "outside": lambda value: value is None or isinstance(value, str),
    "request": lambda value: value is None or isinstance(value, str),
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds."""

    name: str
    settings: dict[str, Any]
    #: SHA-256 of every member but the manifest and its signature.
    hashes: dict[str, str]
    #: The head of the chain of events; archives before there was a chain have none.
    head: str | None
    #: How many events there are; format 1 does not say.
    events: int | None = None
    outside: bool = False
    format: int = field(default=FORMAT)

    def as_text(self) -> str:
        """As it is written."""
        said = {
            "kind": _KIND, "format": FORMAT, "name": self.name, "settings": self.settings, "hashes": self.hashes,
            "head": self.head, "events": self.events, "outside": self.outside,
        }  # fmt: skip
        return json.dumps(said, sort_keys=True, ensure_ascii=False)


def portable(about: Mapping[str, Any]) -> dict[str, Any]:
    """Of the settings of a campaign, those that it takes along."""
    return {name: bool(about.get(name)) if name == "own" else about.get(name) for name in _SETTINGS}


def read_manifest(data: bytes) -> Manifest:
    """A manifest from its text; whatever is unknown, missing or of another type is refused in one line."""
    said = read_json(data, LIMITS)
    if not isinstance(said, dict) or type(said.get("format")) is not int:
        raise InputError("its manifest is none")
    if said["format"] not in (1, FORMAT):
        raise StoreError(f"archive format {said['format']}, this version reads up to {FORMAT}; upgrade activecover")
    manifest = _read_first(said) if said["format"] == 1 else _read_second(said)
    check_name(manifest.name)
    if manifest.head is not None and not _HASH.fullmatch(manifest.head):
        raise InputError("its manifest states a head that is no hash")
    for inside, digest in manifest.hashes.items():
        if not isinstance(digest, str) or not _HASH.fullmatch(digest):
            raise InputError(f"its manifest states a hash of {inside[:80]!r} that is none")
    strange = [inside for inside in manifest.hashes if inside not in (EVENTS, OUTSIDE) and not inside.startswith(POOL)]
    if strange or EVENTS not in manifest.hashes or (OUTSIDE in manifest.hashes) != manifest.outside:
        raise InputError("its manifest does not list the files of a campaign")
    return manifest


def _read_first(said: Mapping[str, Any]) -> Manifest:
    _check_fields(said, {"format", "name", "about", "hashes"}, {"head"})
    about = said["about"]
    if not isinstance(about, dict):
        raise InputError("its manifest has no settings")
    _check_settings(about, {**_SETTINGS, **_PLACES})
    return Manifest(
        name=said["name"], settings=portable(about), hashes=_hashes(said), head=_head(said),
        outside=bool(about.get("outside")), format=1,
    )  # fmt: skip


def _read_second(said: Mapping[str, Any]) -> Manifest:
    _check_fields(said, {"kind", "format", "name", "settings", "hashes", "head", "events", "outside"}, set())
    if said["kind"] != _KIND or type(said["events"]) is not int or said["events"] < 0:
        raise InputError("its manifest is none")
    if type(said["outside"]) is not bool or not isinstance(said["settings"], dict) or said["head"] is None:
        raise InputError("its manifest is damaged")
    _check_fields(said["settings"], set(_SETTINGS), set())
    _check_settings(said["settings"], _SETTINGS)
    return Manifest(
        said["name"], dict(said["settings"]), _hashes(said), _head(said), said["events"], said["outside"], FORMAT
    )


def _check_fields(said: Mapping[str, Any], needed: set[str], allowed: set[str]) -> None:
    for name in sorted(needed - set(said)):
        raise InputError(f"its manifest lacks {name!r}")
    for name in sorted(set(said) - needed - allowed):
        raise InputError(f"its manifest has an unknown field {name[:50]!r}")
    if "name" in said and not isinstance(said["name"], str):
        raise InputError("its manifest states a name that is no text")


def _check_settings(settings: Mapping[str, Any], known: Mapping[str, Callable[[object], bool]]) -> None:
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"its manifest has an unknown setting {name[:50]!r}")
        if not known[name](value):
            raise InputError(f"its manifest has a setting {name!r} that cannot be")


def _hashes(said: Mapping[str, Any]) -> dict[str, str]:
    if not isinstance(said["hashes"], dict):
        raise InputError("its manifest lists no files")
    return dict(said["hashes"])


def _head(said: Mapping[str, Any]) -> str | None:
    head = said.get("head")
    if head is not None and not isinstance(head, str):
        raise InputError("its manifest states a head that is no hash")
    # Logs from before the chain had an empty head.
    return head or None
