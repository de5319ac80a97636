"""A certificate against its signature and the archive of its campaign, on any machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activecover.campaign import Campaign, Certificate, check_certificate
from activecover.errors import InputError
from activecover.store import JSON
from activecover.strict import JsonLimits, read_json
from activecover.workspace._keys import PublicKey, signing_key
from activecover.workspace._signing import SIGNATURE, Signer, canonical, check_signature, signed, without_signature
from activecover.workspace._unpacking import said_of, unpack
from activecover.workspace._workspace import Workspace

_LIMITS = JsonLimits(size=1 << 24, values=100_000, depth=32)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a certificate, and what its signatures prove."""

    problems: list[str]
    notes: list[str]

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems


def sign_certificate(home: Workspace, certificate: Certificate) -> dict[str, Any]:
    """A certificate as JSON holds it, signed with the key of a home."""
    return signed(certificate.as_dict(), signing_key(home.folder))


def read_certificate(path: Path) -> JSON:
    """A certificate from the file that ``activecover certify --out`` wrote."""
    try:
        size = path.stat().st_size
        if size > _LIMITS.size:
            raise InputError(f"{path}: {size:,} bytes are too many for a certificate")
        data = path.read_bytes()
    except OSError as wrong:
        raise InputError(f"{path}: cannot be read ({wrong.strerror})") from wrong
    try:
        document: JSON = read_json(data, _LIMITS)
        return document
    except InputError as wrong:
        raise InputError(f"{path}: is not JSON ({wrong}); give the file that certify --out wrote") from wrong


@contextmanager
def opened_archive(archive: Path, key: PublicKey | None = None, *, large: bool = False) -> Iterator[Campaign]:
    """The campaign of an archive, to look at; nothing is kept of it, and no home is touched."""
    with _opened(archive, key, large) as (campaign, _):
        yield campaign


def verify(
    document: object,
    *,
    archive: Path | None = None,
    campaign: Campaign | None = None,
    key: PublicKey | None = None,
    large: bool = False,
) -> Verdict:
    """Check a certificate, its signature, and that it follows from the log of an archive or a campaign.

    Parameters
    ----------
    document : object
        The certificate, as JSON holds it.
    archive : path, optional
        The archive that it is to follow from. One that was changed is refused.
    campaign : Campaign, optional
        The campaign that it is to follow from, in place of an archive.
    key : PublicKey, optional
        The key that certificate and archive must be signed with, as its owner gave it.
    large : bool
        Whether the archive may be larger than usual.
    """
    problems: list[str] = []
    notes: list[str] = []
    try:
        notes.append(_signer_of(document, key).note("certificate"))
    except InputError as wrong:
        problems.append(f"signature: {wrong}")
    bare = without_signature(document) if isinstance(document, Mapping) else document
    if archive is not None:
        with _opened(archive, key, large) as (opened, signer):
            problems += check_certificate(bare, opened.history(), opened.pool)
        notes.append(signer.note("archive"))
    elif campaign is not None:
        campaign.log.verify()
        problems += check_certificate(bare, campaign.history(), campaign.pool)
    return Verdict(problems, notes)


def verify_with_archive(document: object, archive: Path, key: PublicKey | None = None) -> list[str]:
    """What is wrong with a certificate, as far as an archive says; an archive that was changed is refused."""
    return verify(document, archive=archive, key=key).problems


def verify_with_campaign(document: object, campaign: Campaign, key: PublicKey | None = None) -> list[str]:
    """What is wrong with a certificate, as far as the log of a campaign says."""
    return verify(document, campaign=campaign, key=key).problems


def _signer_of(document: object, key: PublicKey | None) -> Signer:
    if not isinstance(document, Mapping):
        raise InputError("it is no certificate")
    try:
        data = canonical(without_signature(document))
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InputError(f"it cannot be written as JSON ({str(wrong)[:80]})") from None
    return check_signature("certificate", data, document.get(SIGNATURE), key)


@contextmanager
def _opened(archive: Path, key: PublicKey | None, large: bool) -> Iterator[tuple[Campaign, Signer]]:
    with tempfile.TemporaryDirectory(prefix="activecover-") as folder:
        unpacked = unpack(archive, Path(folder), key=key, large=large)
        with said_of(archive, unpacked.folder), unpacked.open() as campaign:
            yield campaign, unpacked.signer
