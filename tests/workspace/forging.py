"""Archives as somebody makes them who means harm: every hash, chain and signature fits what they changed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from activecover.store import heads

STRANGER = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
FORMAT_1 = Path(__file__).parent / "archives" / "format-1.zip"
FORMAT_1_OWN = Path(__file__).parent / "archives" / "format-1-own.zip"


@dataclass
class Forged:
    """The parts of an archive, to be changed before they are put together again."""

    files: dict[str, bytes]
    manifest: dict[str, Any]
    events: list[dict[str, Any]]
    pool: dict[str, Any]
    signed: bool
    #: Which of its own promises are kept for what was changed.
    rehash: bool = True
    rechain: bool = True
    recheck: bool = True
    resign: bool = True
    #: Members beside those of the manifest, or in place of them, each with fields of its directory entry.
    extra: list[tuple[str, bytes, dict[str, Any]]] = field(default_factory=list)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What is done to the bytes of the finished file.
    bytes: list[Callable[[bytes], bytes]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Forged:
        with zipfile.ZipFile(path) as file:
            parts = {name: file.read(name) for name in file.namelist()}
        manifest = json.loads(parts.pop("manifest.json"))
        signed = parts.pop("signature.json", None) is not None
        events = [json.loads(line) for line in parts["events.jsonl"].splitlines()]
        return cls(parts, manifest, events, json.loads(parts["pool/pool.json"]), signed)

    def write(self, path: Path, key: Ed25519PrivateKey = STRANGER) -> Path:
        files = dict(self.files)
        events = self._rechained() if self.rechain else self.events
        if "events.jsonl" in files and events is not None and not self.entries.get("events.jsonl", {}).get("raw"):
            files["events.jsonl"] = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        if "pool/pool.json" in files and not self.entries.get("pool/pool.json", {}).get("raw"):
            files["pool/pool.json"] = pool_json(self.pool, files, recheck=self.recheck)
        if self.rehash and isinstance(self.manifest.get("hashes"), dict):
            self.manifest["hashes"] = {
                name: hashlib.sha256(files[name]).hexdigest() if name in files else old
                for name, old in {**dict.fromkeys(files), **self.manifest["hashes"]}.items()
            }
        text = json.dumps(self.manifest, ensure_ascii=False).encode("utf-8", "surrogatepass")
        members = [(name, data, self.entries.get(name, {})) for name, data in files.items()]
        members.append(("manifest.json", text, self.entries.get("manifest.json", {})))
        if self.signed:
            signature = json.dumps(signature_of(key, b"activecover archive\n" + text)).encode()
            members.append(("signature.json", signature if self.resign else b"{}", {}))
        write_zip(path, [*members, *self.extra])
        data = path.read_bytes()
        for change in self.bytes:
            data = change(data)
        path.write_bytes(data)
        return path

    def _rechained(self) -> list[Any]:
        """The events with the hashes that belong to them, as the manifest says then too."""
        for place, event in enumerate(self.events):
            if isinstance(event, dict):
                event["seq"] = place
        bare = [{name: value for name, value in event.items() if name != "chain"} for event in self.events]
        events = [{**event, "chain": head} for event, head in zip(bare, heads(bare), strict=True)]
        if events and "head" in self.manifest:
            self.manifest["head"] = events[-1]["chain"]
        if "events" in self.manifest:
            self.manifest["events"] = len(events)
        return events


def pool_json(about: dict[str, Any], files: dict[str, bytes], *, recheck: bool = True) -> bytes:
    """A pool's description, with hashes of what its files hold now, and its own."""
    about = {name: value for name, value in about.items() if name != "check"}
    if recheck and isinstance(about.get("files"), dict):
        parts = {}
        for name, part in about["files"].items():
            data = files.get(f"pool/{name}")
            if data is None or not isinstance(part, dict):
                parts[name] = part
                continue
            body = data[128:] if name.endswith(".npy") else data
            blocks = [body[place : place + (1 << 20)] for place in range(0, len(body), 1 << 20)]
            digests = [hashlib.blake2b(block, digest_size=16).hexdigest() for block in blocks]
            parts[name] = {"size": len(body), "blocks": digests}
        about = {**about, "files": parts}
    text = json.dumps(about, sort_keys=True)
    return json.dumps({**about, "check": hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}).encode()


def signature_of(key: Ed25519PrivateKey, data: bytes) -> dict[str, str]:
    import base64

    raw = key.public_key().public_bytes_raw()
    digest = hashlib.sha256(raw).hexdigest()[:32]
    return {
        "algorithm": "Ed25519", "public_key": base64.b64encode(raw).decode(),
        "fingerprint": "-".join(digest[place : place + 4] for place in range(0, 32, 4)),
        "signature": base64.b64encode(key.sign(data)).decode(),
    }  # fmt: skip


def write_zip(path: Path, members: list[tuple[str, bytes, dict[str, Any]]]) -> None:
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        warnings.simplefilter("ignore")
        for name, data, fields in members:
            info = zipfile.ZipInfo("x")
            info.filename = name
            info.compress_type = fields.get("method", zipfile.ZIP_DEFLATED)
            info.external_attr = fields.get("mode", stat.S_IFREG | 0o600) << 16
            info.extra = fields.get("extra", b"")
            file.writestr(info, data)
        for info in file.infolist():
            for part, value in file_fields(info.filename, members).items():
                setattr(info, part, value)


def file_fields(name: str, members: list[tuple[str, bytes, dict[str, Any]]]) -> dict[str, Any]:
    """What the directory says otherwise than the member itself."""
    return next((fields.get("directory", {}) for other, _, fields in members if other == name), {})


def snapshot(folder: Path, without: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Every name below a folder, with kind, mode, size, time of change and contents."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(root, name) not in without]
        for name in (*folders, *files):
            place = Path(root, name)
            about = place.lstat()
            data = place.read_bytes() if stat.S_ISREG(about.st_mode) else None
            # Where something was made and removed inside, the times of the folder itself tell.
            moment = about.st_mtime_ns if data is not None or place not in {path.parent for path in without} else None
            found[str(place)] = (stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode), moment, data)
    return found
