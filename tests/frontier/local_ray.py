"""A stand-in for Ray in one process, whose actors can be lost at will."""

import types
from pathlib import Path

import numpy as np

from activecover import Pool
from activecover.frontier.ray import ShardedPool
from activecover.testing import random_pool


class Lost(Exception):
    pass


class LocalRay:
    """What is used of Ray, in this process: actors are objects, and every call may lose one."""

    def __init__(self, chance=0.0, seed=0):
        class RayTaskError(Exception):
            def __init__(self, cause):
                self.cause = cause

        class GetTimeoutError(Exception):
            pass

        self.exceptions = types.SimpleNamespace(
            RayError=Lost, RayTaskError=RayTaskError, GetTimeoutError=GetTimeoutError
        )
        self.chance, self.random, self.lost = chance, np.random.default_rng(seed), 0

    def cluster_resources(self):
        return {"CPU": 2.0}

    def remote(self, kind):
        ray = self

        class Handle:
            def __init__(self, *arguments):
                self.inside, self.dead = kind(*arguments), False

            def __getattr__(self, name):
                return types.SimpleNamespace(remote=lambda *arguments: (self, name, arguments))

        return types.SimpleNamespace(options=lambda **_: types.SimpleNamespace(remote=Handle), ray=ray)

    def get(self, reference, timeout):
        actor, name, arguments = reference
        before, after = self.random.random(2) < self.chance / 2
        if before:
            actor.dead = True
        if actor.dead:
            self.lost += 1
            raise Lost("the actor died")
        try:
            answer = getattr(actor.inside, name)(*arguments)
        except Exception as wrong:
            raise self.exceptions.RayTaskError(wrong) from wrong
        if after:  # done, but nobody heard of it
            actor.dead = True
            self.lost += 1
            raise Lost("the actor died")
        return answer

    def kill(self, actor):
        actor.dead = True


class Mirrored(Pool):
    """A pool, and the same rows in shards: what happens to one happens to the other."""

    def __init__(self, points, *, metric, folder, shards):
        super().__init__(points, metric=metric)
        path = Path(folder) / f"{len(list(Path(folder).iterdir()))}.npy"
        np.save(path, points)
        self.twin = ShardedPool(path, metric=metric, shards=shards)

    def extend(self, vectors, **more):
        self.twin.extend(vectors)
        return super().extend(vectors, **more)

    def withdraw(self, rows):
        self.twin.withdraw(rows)
        super().withdraw(rows)


def mirrored(random, folder, monkeypatch, shards):
    """A random pool as the check suite draws it, with a twin in shards."""
    made = {}
    with monkeypatch.context() as patch:
        patch.setattr(
            "activecover.testing._frontier.Pool",
            lambda points, metric: made.setdefault(
                "pool", Mirrored(points, metric=metric, folder=folder, shards=shards)
            ),
        )
        random_pool(random)
    pool = made["pool"]
    assert pool.twin.take(np.arange(len(pool))).tobytes() == pool.vectors.tobytes(), "stored values differ"
    return pool


def scene(folder, rows, dimensions):
    """Positives in a few clusters, some columns far from zero, many duplicates."""
    random = np.random.default_rng([rows, dimensions])
    points = random.normal(size=(rows, dimensions)).astype(np.float32)
    centres = random.normal(size=(5, dimensions))
    positive = random.random(rows) < 0.02
    points[positive] = centres[random.integers(0, 5, positive.sum())] + 0.3 * points[positive]
    copies = random.integers(0, rows, rows // 10)
    points[copies], positive[copies] = points[copies[::-1]], positive[copies[::-1]]
    points[:, :2] += 1000
    np.save(folder / "x.npy", points)
    return points, positive
