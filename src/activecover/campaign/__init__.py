"""Live campaigns: ask for items by id, tell what they are, and never ask in vain."""

from activecover.campaign._campaign import Campaign
from activecover.campaign._certificate import Certificate, certify, check_certificate
from activecover.campaign._doubting import Suspicion
from activecover.campaign._forgetting import UNDO_WINDOW
from activecover.campaign._items import Item, Status
from activecover.campaign._mixer import check_share
from activecover.campaign._sight import Sight, blinded

__all__ = [
    "UNDO_WINDOW",
    "Campaign",
    "Certificate",
    "Item",
    "Sight",
    "Status",
    "Suspicion",
    "blinded",
    "certify",
    "check_certificate",
    "check_share",
]
