"""Live campaigns: ask for items by id, tell what they are, and ask for nothing twice."""

from activecover.campaign._agreement import Agreement
from activecover.campaign._campaign import Campaign
from activecover.campaign._certificate import Certificate, certify, check_certificate
from activecover.campaign._eraser import UNDO_WINDOW, ForgettingStatus
from activecover.campaign._items import Item, Status
from activecover.campaign._mixer import check_share
from activecover.campaign._records import named_positive
from activecover.campaign._sight import Sight, blinded
from activecover.campaign._snapshot import Snapshot
from activecover.campaign._suspects import Suspicion

__all__ = [
    "UNDO_WINDOW",
    "Agreement",
    "Campaign",
    "Certificate",
    "ForgettingStatus",
    "Item",
    "Sight",
    "Snapshot",
    "Status",
    "Suspicion",
    "blinded",
    "certify",
    "check_certificate",
    "check_share",
    "named_positive",
]
