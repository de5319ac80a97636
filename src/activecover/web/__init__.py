"""Campaigns over HTTP: a server with a page for people, and a client that works like a campaign.

The client is here by name; the server is :func:`activecover.web.server.serve` and needs the extra ``web``.
"""

from activecover.web._client import Client, RemoteCampaign

__all__ = ["Client", "RemoteCampaign"]
