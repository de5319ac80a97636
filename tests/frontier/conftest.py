"""Fixtures of the tests of frontiers."""

import pytest
from local_ray import LocalRay

from activecover.frontier.ray import _actors, _pool


@pytest.fixture
def local_ray(monkeypatch):
    ray = LocalRay()
    monkeypatch.setattr(_actors, "import_ray", lambda: ray)
    monkeypatch.setattr(_pool, "import_ray", lambda: ray)
    monkeypatch.setattr(_pool, "connect", lambda address: None)
    return ray
