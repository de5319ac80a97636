"""A folder with everything: campaigns, their labels, and the pools that they share."""

from activecover.workspace._archive import archive
from activecover.workspace._exchange import export_labels, read_answers
from activecover.workspace._keys import PublicKey, SigningKey, secret_of, signing_key
from activecover.workspace._people import LIFETIME, OWNER, ROLES, People, Person, Role, new_token
from activecover.workspace._privacy import PrivacyReport, privacy_check
from activecover.workspace._restoring import restore, restored
from activecover.workspace._signing import Signer
from activecover.workspace._verify import (
    Verdict,
    opened_archive,
    read_certificate,
    sign_certificate,
    verify,
    verify_with_archive,
    verify_with_campaign,
)
from activecover.workspace._withdrawing import Withdrawal
from activecover.workspace._workspace import Workspace, default_folder, embedding_for

__all__ = [
    "LIFETIME",
    "OWNER",
    "ROLES",
    "People",
    "Person",
    "PrivacyReport",
    "PublicKey",
    "Role",
    "Signer",
    "SigningKey",
    "Verdict",
    "Withdrawal",
    "Workspace",
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
