"""Signatures over certificates and archives, and what they prove."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from activecover.errors import InputError
from activecover.workspace._keys import PublicKey, SigningKey

__all__ = ["SIGNATURE", "Signer", "canonical", "check_signature", "signed", "without_signature"]

#: Where a signed document holds its signature.
SIGNATURE = "signature"
_ALGORITHM = "Ed25519"
_FIELDS = {"algorithm", "public_key", "fingerprint", "signature"}


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer of something, as far as known."""

    key: PublicKey | None
    #: Whether the key was compared with one that was handed over through another channel.
    trusted: bool
    #: Whether it is the key of the home that looks at it.
    own: bool = False

    def note(self, what: str) -> str:
        """What the signature proves, in one sentence."""
        if self.key is None:
            return f"the {what} is not signed (an earlier version made it): anybody could have written it"
        if self.trusted:
            return f"the {what} is signed with the key that you gave, {self.key.fingerprint}"
        if self.own:
            return f"the {what} is signed with the key of this home, {self.key.fingerprint}"
        return (
            f"the {what} was not changed since someone signed it with the key {self.key.fingerprint}; "
            "whose key that is, the signature does not show: get the key from its owner and give it with --key"
        )


def canonical(document: Mapping[str, Any]) -> bytes:
    """The bytes of a document that are signed: JSON with sorted keys and no blanks, in UTF-8.

    Examples
    --------
    >>> canonical({"b": 1, "a": [True, None, 0.5]})
    b'{"a":[true,null,0.5],"b":1}'
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def signed(document: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:
    """A document with a signature over everything else in it."""
    bare = without_signature(document)
    return {**bare, SIGNATURE: key.signature_of(canonical(bare))}


def without_signature(document: Mapping[str, Any]) -> dict[str, Any]:
    """What was signed."""
    return {name: value for name, value in document.items() if name != SIGNATURE}


def check_signature(what: str, data: bytes, signature: object, key: PublicKey | None) -> Signer:
    """The signer of some bytes; refused if the signature does not fit, or was made with another key than the given one.

    Parameters
    ----------
    what : str
        What it is, for messages.
    data : bytes
        What was signed.
    signature : object
        The fields that :meth:`~activecover.workspace.SigningKey.signature_of` gives; None where there are none.
    key : PublicKey, optional
        The key that it must be signed with, handed over through another channel than the document itself.
    """
    if signature is None:
        if key is not None:
            raise InputError(f"the {what} is not signed: nothing shows that the owner of {key.fingerprint} made it")
        return Signer(None, trusted=False)
    if (
        not isinstance(signature, Mapping)
        or set(signature) != _FIELDS
        or not all(isinstance(value, str) and len(value) < 200 for value in signature.values())
        or signature["algorithm"] != _ALGORITHM
    ):
        raise InputError(f"the signature of the {what} is damaged, or of a newer version")
    try:
        stated = PublicKey(base64.b64decode(signature["public_key"], validate=True))
    except (ValueError, binascii.Error):
        raise InputError(f"the signature of the {what} is damaged: its public key is none") from None
    if stated.text != signature["public_key"] or stated.fingerprint != signature["fingerprint"]:
        raise InputError(f"the signature of the {what} is damaged: key and fingerprint do not belong together")
    if not stated.check(signature["signature"], data):
        raise InputError(f"the {what} was changed after it was signed: its signature does not fit")
    if key is not None and key.raw != stated.raw:
        raise InputError(
            f"the {what} was signed with another key: {stated.fingerprint}, not {key.fingerprint} that you gave"
        )
    return Signer(stated, trusted=key is not None)
