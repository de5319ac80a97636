"""Images as vectors, by principal components of their pixels or by a given network."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from activecover.errors import InputError
from activecover.extras import require
from activecover.intake._base import Allocate, Embedding
from activecover.intake._table import Table
from activecover.pool import VectorsLike

_BATCH = 256
#: Images that the directions are learnt from; more of them change little.
_MOST_FITTED = 4000


class ImageEmbedding(Embedding):
    """Images, scaled to squares, as leading principal components or as the output of a network.

    The paper's networks are trained on the labelled exploration sample. They are in
    :mod:`activecover.lab.networks`, and ``activecover bench`` runs them.

    Parameters
    ----------
    columns : None
        Images come from a folder or a zip file, not from columns.
    network : str, optional
        A TorchScript file: a network that takes images (n, 3, side, side) with values from 0 to 1 and returns
        vectors (n, d). Only its path and hash are stored, so the file is needed again for added rows.
    side : int
        Width and height to which images are scaled.
    dimensions : int
        Most principal components, if there is no network.
    seed : int
        Seed for the images to learn from and for the decomposition.
    """

    name = "images"

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        network: str | None = None,
        side: int | None = None,
        dimensions: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__(columns, seed=seed)
        self.network = network
        self.side = side
        self.dimensions = dimensions

    @property
    def elsewhere(self) -> str | None:
        """The file of the network, if there is one."""
        return self.network

    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        own = {"network": self.network, "side": self.side, "dimensions": self.dimensions}
        return {**super().parameters(), **own}

    def transform(self, table: Table, allocate: Allocate = np.empty) -> VectorsLike:
        """The vectors of a table's images, float32."""
        if table.images is None:
            raise InputError(f"{table.source}: no images; give a folder or a zip file of them")
        reduce = self._by_network() if self.network is not None else self._by_components
        vectors: npt.NDArray[Any] | None = None
        for start in range(0, len(table), _BATCH):
            rows = range(start, min(start + _BATCH, len(table)))
            part = reduce(self._pixels(table, rows))
            if vectors is None:
                vectors = allocate((len(table), part.shape[1]), np.float32)
            vectors[rows.start : rows.stop] = part
        assert vectors is not None, "a table has rows"
        return vectors

    def _default_columns(self, table: Table, free: Sequence[str]) -> list[str]:
        return []

    def _fit(self, table: Table) -> None:
        if table.images is None:
            raise InputError(f"{table.source}: no images; give a folder or a zip file of them")
        require("PIL.Image", extra="images", purpose="images")
        self.mean_, self.directions_ = np.zeros(0), np.zeros((0, 0))
        self.digest_ = ""
        if self.network is not None:
            self.digest_ = hashlib.sha256(_network_bytes(self.network)).hexdigest()
            return
        chosen = np.random.default_rng(self.seed).permutation(len(table))[:_MOST_FITTED]
        points = self._pixels(table, np.sort(chosen)).reshape(len(chosen), -1).astype(np.float64)
        # After the pixels, so that unreadable images are reported first.
        from sklearn.utils.extmath import randomized_svd

        self.mean_ = points.mean(axis=0)
        count = max(1, min(self.dimensions, len(points) - 1))
        with threadpool_limits(1, "blas"):
            _, _, directions = randomized_svd(points - self.mean_, count, n_iter=5, random_state=self.seed)
        self.directions_ = directions

    def _pixels(self, table: Table, rows: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        assert table.images is not None
        side = self.side or (32 if self.network is None else 224)
        return np.stack([table.images.pixels(int(row), side) for row in rows])

    def _by_components(self, pixels: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        # In float64, so that the float32 vectors do not depend on the other rows.
        points = pixels.reshape(len(pixels), -1).astype(np.float64)
        return np.asarray((points - self.mean_) @ self.directions_.T)

    def _by_network(self) -> Callable[[npt.NDArray[np.float32]], npt.NDArray[Any]]:
        torch = require("torch", extra="torch", purpose="networks")
        assert self.network is not None
        data = _network_bytes(self.network)
        if hashlib.sha256(data).hexdigest() != self.digest_:
            raise InputError(f"network {self.network}: it has changed since the first rows were embedded")
        try:
            model = torch.jit.load(io.BytesIO(data), map_location="cpu").eval()
        except Exception as wrong:
            reason = str(wrong).strip().partition("\n")[0]
            raise InputError(f"network {self.network}: not a TorchScript file ({reason})") from wrong

        def reduce(pixels: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
            with torch.inference_mode():
                made = model(torch.as_tensor(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))))
            return np.asarray(made.reshape(len(pixels), -1).numpy())

        return reduce

    def _learnt(self) -> tuple[dict[str, Any], Mapping[str, npt.NDArray[Any]]]:
        return {"digest": self.digest_}, {"mean": self.mean_, "directions": self.directions_}

    def _restore(self, learnt: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.digest_ = str(learnt["digest"])
        self.mean_, self.directions_ = arrays["mean"], arrays["directions"]


def _network_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as wrong:
        raise InputError(f"network {path}: cannot be read ({wrong.strerror})") from wrong
