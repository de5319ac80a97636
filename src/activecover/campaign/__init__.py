"""Live campaigns: ask for items by id, tell what they are, and never ask in vain."""

from activecover.campaign._campaign import DEFAULT_LEARNER, Campaign
from activecover.campaign._items import Item, Status

__all__ = ["DEFAULT_LEARNER", "Campaign", "Item", "Status"]
