"""A folder with everything: campaigns, their labels, and the pools that they share."""

from activecover.home._archive import archive
from activecover.home._exchange import export_labels, read_answers
from activecover.home._home import Home, default_folder, embedding_for
from activecover.home._keys import PublicKey, SigningKey, secret_of, signing_key
from activecover.home._people import LIFETIME, OWNER, ROLES, People, Person, Role, new_token
from activecover.home._privacy import PrivacyReport, privacy_check
from activecover.home._restoring import restore, restored
from activecover.home._signing import Signer
from activecover.home._verify import (
    Verdict,
    opened_archive,
    read_certificate,
    sign_certificate,
    verify,
    verify_with_archive,
    verify_with_campaign,
)
from activecover.home._withdrawing import Withdrawal

__all__ = [
    "LIFETIME",
    "OWNER",
    "ROLES",
    "Home",
    "People",
    "Person",
    "PrivacyReport",
    "PublicKey",
    "Role",
    "Signer",
    "SigningKey",
    "Verdict",
    "Withdrawal",
    "archive",
    "default_folder",
    "embedding_for",
    "export_labels",
    "new_token",
    "opened_archive",
    "privacy_check",
    "read_answers",
    "read_certificate",
    "restore",
    "restored",
    "secret_of",
    "sign_certificate",
    "signing_key",
    "verify",
    "verify_with_archive",
    "verify_with_campaign",
]
