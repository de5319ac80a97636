"""A certificate against the archive of its campaign, on any machine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from activecover.campaign import Campaign, check_certificate
from activecover.errors import ActiveCoverError, InputError
from activecover.home._archive import restore
from activecover.home._home import Home


def read_certificate(path: Path) -> Any:
    """A certificate from the file that ``activecover certify --out`` wrote."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as wrong:
        raise InputError(f"{path}: cannot be read ({wrong.strerror})") from wrong
    except (ValueError, RecursionError) as wrong:
        raise InputError(f"{path}: is not JSON; give the file that certify --out wrote") from wrong


@contextmanager
def opened_archive(archive: Path) -> Iterator[Campaign]:
    """The campaign of an archive, to look at; nothing is kept of it, and no other campaign is touched."""
    with tempfile.TemporaryDirectory(prefix="activecover-") as folder, Home(folder) as home:
        name = restore(home, archive)
        try:
            with home.open(name) as campaign:
                yield campaign
        except ActiveCoverError as wrong:
            raise type(wrong)(str(wrong).replace(f"{home.store} ({name})", str(archive))) from wrong


def verify_with_archive(document: Any, archive: Path) -> list[str]:
    """What is wrong with a certificate, as far as an archive says; an archive that was changed is refused."""
    with opened_archive(archive) as campaign:
        return verify_with_campaign(document, campaign)


def verify_with_campaign(document: Any, campaign: Campaign) -> list[str]:
    """What is wrong with a certificate, as far as the log of a campaign says."""
    campaign.log.verify()
    return check_certificate(document, campaign.history(), campaign.pool)
