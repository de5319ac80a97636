"""The keys of a home: a secret for hashing tokens, and an Ed25519 key that signs certificates and archives."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from activecover.errors import InputError, StoreError
from activecover.files import private_folder, sync_folder, write_whole

_SECRET_BYTES = 32
_SIGNING = "signing.pem"
_PEM_START = "-----BEGIN "


def secret_of(folder: Path) -> bytes:
    """The secret of a home, 32 random bytes; made the first time.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> len(secret_of(folder)), secret_of(folder) == secret_of(folder)
    (32, True)
    """
    path = private_folder(folder / "keys") / "secret"
    secret = _kept_or_made(path, secrets.token_bytes(_SECRET_BYTES))
    if len(secret) != _SECRET_BYTES:
        raise StoreError(f"{path}: damaged, {len(secret)} bytes in place of {_SECRET_BYTES}; restore it from a copy")
    return secret


def signing_key(folder: Path) -> SigningKey:
    """The key that signs for a home; made the first time.

    Examples
    --------
    >>> import tempfile
    >>> key = signing_key(Path(tempfile.mkdtemp()))
    >>> key.public.check(key.sign(b"text"), b"text"), key.public.check(key.sign(b"text"), b"other")
    (True, False)
    """
    path = private_folder(folder / "keys") / _SIGNING
    fresh = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        key = serialization.load_pem_private_key(_kept_or_made(path, fresh), password=None)
    except (ValueError, TypeError) as wrong:
        raise StoreError(f"{path}: the signing key is damaged; restore it from a copy") from wrong
    if not isinstance(key, Ed25519PrivateKey):
        raise StoreError(f"{path}: not an Ed25519 key; restore it from a copy")
    return SigningKey(key)


def known_key(folder: Path) -> PublicKey | None:
    """The public half of the key that signs for a home; None if it has not signed anything yet."""
    return signing_key(folder).public if (folder / "keys" / _SIGNING).exists() else None


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The key that a signature is checked with."""

    raw: bytes

    @property
    def text(self) -> str:
        """The key as it is written on certificates: 44 characters of base64."""
        return base64.b64encode(self.raw).decode()

    @property
    def fingerprint(self) -> str:
        """A short form that people can compare by eye or on the telephone.

        Examples
        --------
        >>> PublicKey(bytes(32)).fingerprint
        '6668-7aad-f862-bd77-6c8f-c18b-8e9f-8e20'
        """
        digest = hashlib.sha256(self.raw).hexdigest()[:32]
        return "-".join(digest[place : place + 4] for place in range(0, 32, 4))

    def check(self, signature: str, data: bytes) -> bool:
        """Whether a signature was made of these bytes with the private half of this key."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(base64.b64decode(signature, validate=True), data)
        except (InvalidSignature, ValueError, binascii.Error):
            return False
        return True

    @classmethod
    def read(cls, given: str) -> PublicKey:
        """A key from base64, or from a file that holds it (base64 or PEM)."""
        text = given.strip()
        path = Path(given)
        try:
            if path.is_file():
                text = path.read_text("ascii").strip()
        except (OSError, ValueError) as wrong:
            raise InputError(f"{given}: the public key cannot be read ({wrong})") from wrong
        return cls.decode(text)

    @classmethod
    def decode(cls, text: str) -> PublicKey:
        """A key from its text alone (base64 or PEM): no file is looked for."""
        text = text.strip()
        try:
            if text.startswith(_PEM_START):
                key = serialization.load_pem_public_key(text.encode())
                if not isinstance(key, Ed25519PublicKey):
                    raise ValueError("not an Ed25519 key")
                return cls(key.public_bytes_raw())
            raw = base64.b64decode(text, validate=True)
            Ed25519PublicKey.from_public_bytes(raw)
            return cls(raw)
        except (ValueError, binascii.Error) as wrong:
            raise InputError(
                f"{text[:100]!r} is not a public key: give the 44 characters that `activecover key` prints, or a file of them"
            ) from wrong


class SigningKey:
    """The private half, which stays in its home."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @property
    def public(self) -> PublicKey:
        """The half that may be handed around."""
        return PublicKey(self._key.public_key().public_bytes_raw())

    def sign(self, data: bytes) -> str:
        """A signature, in base64."""
        return base64.b64encode(self._key.sign(data)).decode()

    def signature_of(self, data: bytes) -> dict[str, Any]:
        """The fields that a signed document carries."""
        public = self.public
        return {
            "algorithm": "Ed25519", "public_key": public.text, "fingerprint": public.fingerprint,
            "signature": self.sign(data),
        }  # fmt: skip


def _kept_or_made(path: Path, fresh: bytes) -> bytes:
    """The contents of a key file; if there is none, the first process makes it of ``fresh``."""
    try:
        if not path.exists():
            # Written beside it and linked into place: linking fails where somebody else was quicker.
            beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            write_whole(beside, fresh)
            try:
                os.link(beside, path)
                sync_folder(path.parent)
            except FileExistsError:
                pass
            finally:
                beside.unlink()
        return path.read_bytes()
    except OSError as wrong:
        raise StoreError(f"{path}: the key cannot be used ({wrong.strerror or wrong})") from wrong
