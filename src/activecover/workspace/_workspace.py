"""Campaigns by name, in one folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from activecover.campaign import UNDO_WINDOW, Campaign, check_share
from activecover.errors import InputError
from activecover.files import WorkFolder, make_private, private_folder, sweep
from activecover.intake import Intake, Recipe, make_pool, read_table
from activecover.learners import LEARNERS
from activecover.pool import Duplicates, Pool, PoolFolder, VectorsLike
from activecover.stopping import ControlQuantile, Rule, parse_guarantee
from activecover.workspace._outside import joined, load_outside, save_outside
from activecover.workspace._people import People
from activecover.workspace._pools import are_inside, arranging, place_pool
from activecover.workspace._restoring import take_back
from activecover.workspace._withdrawing import Withdrawal, have_alone, withdraw

if TYPE_CHECKING:
    from activecover.store import SqlLog, SqlStore


def default_folder() -> Path:
    """Where campaigns live: ``ACTIVECOVER_HOME``, else a folder of the user's."""
    return Path(os.environ.get("ACTIVECOVER_HOME") or Path.home() / ".activecover")


#: What a home keeps beside its store, all of it for its owner alone.
_PARTS = ("keys", "outside", "own", "pools", ".uploads")

#: The kinds of work folders, which are swept if the process has died that made them.
WORK = ("intake", "archive", "copy")


def _prepare(folder: Path) -> None:
    """Make the folder of a home, or take others' rights to one that an earlier version made."""
    if not folder.is_dir():
        private_folder(folder)
        return
    if (folder / "store.sqlite").exists() or (folder / "pools").exists() or not any(folder.iterdir()):
        # A home, and not a folder in which somebody keeps other things as well.
        with suppress(PermissionError):
            folder.chmod(0o700)
    for part in _PARTS:
        if (folder / part).is_dir():
            make_private(folder / part)
    for file in (*folder.glob("store.sqlite*"), *folder.glob("people.json*")):
        with suppress(PermissionError, FileNotFoundError):
            file.chmod(0o600)


class Workspace:
    r"""A folder of campaigns: a store with their events, and the pools, each stored once.

    Parameters
    ----------
    folder : path, optional
        Made if it does not exist; :func:`default_folder` by default.
    store : str, optional
        Where the events go: ``postgresql://…``, else an SQLite file in the folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> home = Workspace(folder.name)
    >>> file = home.folder / "cars.csv"
    >>> _ = file.write_text("id,weight,doors\na,900,3\nb,2100,5\nc,950,3\n")
    >>> with home.new("cars", file, learner="explore-commit", explore=0, known=["a"], id_column="id") as campaign:
    ...     [item.id for item in campaign.ask()]
    ['c']
    >>> home.names()
    ['cars']
    >>> home.close(); folder.cleanup()
    """

    def __init__(self, folder: str | Path | None = None, store: str | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()
        try:
            _prepare(self.folder)
            sweep(self.folder, WORK)
        except OSError as wrong:
            raise InputError(f"{self.folder}: the folder cannot be made ({wrong.strerror})") from wrong
        self.url = store or str(self.folder / "store.sqlite")
        self._store: SqlStore | None = None
        #: Who may use a server of this home.
        self.people = People(self)
        take_back(self)

    @property
    def store(self) -> SqlStore:
        """The events of all campaigns."""
        if self._store is None:
            from activecover.store import SqlStore

            self._store = SqlStore(self.url, are_inside)
        return self._store

    def names(self) -> list[str]:
        """The campaigns there are."""
        return self.store.names()

    def new(
        self,
        name: str,
        source: str | Path | Pool | Intake,
        *,
        embed: str = "auto",
        columns: Sequence[str] | None = None,
        id_column: str | None = None,
        label_column: str | None = None,
        show: Sequence[str] | None = None,
        metric: str | None = None,
        header: bool = True,
        forget_negatives: bool = False,
        duplicates: bool | float = False,
        same: Sequence[str] | None = None,
        external_positives: str | Path | VectorsLike | None = None,
        lease: float | None = None,
        budget: int | None = None,
        target: int | None = None,
        learner: str | None = None,
        certify: str | Rule | None = None,
        rule: str | None = None,
        random_share: float | None = None,
        **settings: Any,
    ) -> Campaign:
        """Begin a campaign on a file, a pool, or the result of an intake.

        Vectors are made as ``embed`` says; ``auto`` looks at the file, and keeps texts as their words unless the
        learner is one that does better, or only works, with dense vectors.
        With ``certify`` (``0.95@0.95``) the campaign ends when that is proved, by the ``rule`` of that name; a
        blind control sample (qbcb) by default. With ``random_share`` that share of the asks stays random.
        ``settings`` go to the campaign (``seed``, ``explore``, ``known``, ``overlap``). With
        ``forget_negatives`` the campaign gets a copy of the pool of its own, in which what turned out
        negative is overwritten. With ``duplicates`` items that are one and the same are asked for once and
        labelled together: those with the same contents in the columns ``same`` (by default those that the
        vectors were made of) or with the same vector, and, where it is a number, those whose vectors lie
        no farther apart than that. Molecules may share a fingerprint, so of these the vectors do not count.
        ``external_positives`` are not in the pool: a file like that of the pool, or vectors.
        """
        if name in self.names():
            raise InputError(f"{self.store}: there is a campaign {name!r} already; choose another name")
        if forget_negatives and learner is not None and LEARNERS[learner].negatives != "none":
            raise InputError(f"{learner} learns from negatives, so they cannot be forgotten: choose explore-commit")
        # Before anything is kept.
        promise, random_share = _promise(certify, rule), check_share(random_share)
        with WorkFolder(self.folder, "intake") as work:
            made = self._take_in(
                source, work, embed=embedding_for(embed, learner, forget_negatives), columns=columns, id_column=id_column, label_column=label_column,
                show=show, metric=metric, header=header,
            )  # fmt: skip
            if duplicates is not False:
                settings["duplicates"] = _duplicates(made, duplicates, same)
            outside = None
            if external_positives is not None:
                outside = _vectors_of(made.recipe if isinstance(made, Intake) else None, external_positives, header)
            _store_pool(work, made, own=forget_negatives)
            # From now on its files are mapped: a large pool is not to be in memory twice.
            del made
            about: dict[str, Any] = {
                "own": forget_negatives, "outside": None if outside is None else f"outside/{name}.npz",
            }  # fmt: skip
            with arranging(self.folder):
                about["pool"] = place_pool(self.folder, work / "pool", name if forget_negatives else None)
                try:
                    self.store.create(name, about).close()
                except BaseException:
                    self._drop_files(about)
                    raise
        try:
            if outside is not None:
                save_outside(self.folder / about["outside"], outside)
            return self._campaign(
                name, about, learner=learner, forget_negatives=forget_negatives, certify=promise,
                random_share=random_share, lease=lease, budget=budget, target=target, **settings,
            )  # fmt: skip
        except BaseException:
            self.remove(name)
            raise

    def open(self, name: str, **options: Any) -> Campaign:
        """Resume a campaign.

        ``options`` are those of :class:`Campaign` that are not recorded, and ``default_lease``, for a campaign that
        began without a lease.
        """
        return self._campaign(name, self.store.about(name), **options)

    def pool_folder(self, name: str) -> PoolFolder:
        """Where the items of a campaign are kept."""
        return PoolFolder(self.folder / self.store.about(name)["pool"])

    def recipe(self, name: str) -> Recipe | None:
        """How the rows of a campaign were made, unless it was given vectors."""
        place = self.pool_folder(name).embedding_folder
        recipe = Recipe.load(place) if place.is_dir() and any(place.iterdir()) else None
        about = self.store.about(name)
        if recipe is not None and recipe.embedding.elsewhere and about.get("foreign", "restored" in about):
            raise InputError(
                f"{name}: came in an archive that names {recipe.embedding.elsewhere[:80]!r} for making vectors, which would "
                "be fetched or read here and run; if you trust who made the archive, restore it with their --key"
            )
        return recipe

    def add_rows(self, name: str, source: str | Path, *, header: bool = True) -> int:
        """Add the rows of a file to a campaign's pool, in the same space; how many there were."""
        recipe = self.recipe(name)
        if recipe is None:
            raise InputError(f"{name}: its pool was given as vectors; add rows with Campaign.pool.extend")
        rows = recipe.read(read_table(source, header=header))
        have_alone(self, [name])
        folder = self.pool_folder(name)
        before = folder.rows
        folder.append(rows.vectors, ids=rows.ids, contents=rows.contents)
        with self.open(name) as campaign:
            campaign.journal.record_growth()
        return folder.rows - before

    def add_outside(self, name: str, source: str | Path | VectorsLike, *, header: bool = True) -> int:
        """Add positives that are not in the pool, and return how many. Open campaigns see them when they are reopened."""
        about = self.store.about(name)
        path = self.folder / f"outside/{name}.npz"
        more = _vectors_of(self.recipe(name), source, header)
        with self.open(name) as campaign:
            known = load_outside(path) if about.get("outside") else None
            whole = joined(campaign.pool, known, more)
            count = int(campaign.pool.encode(more).shape[0])
            # The log decides on which of both holds, if this is cut short.
            save_outside(path.with_suffix(".new.npz"), whole)
            campaign.journal.record_external(campaign.pool.encode(whole), count)
        path.with_suffix(".new.npz").replace(path)
        self.store.set_about(name, {**about, "outside": f"outside/{name}.npz"})
        return count

    def withdraw(self, name: str, ids: Sequence[str], by: str = "me", *, everywhere: bool = False) -> Withdrawal:
        """Erase items for good, in the pool's files too, and name the other campaigns that hold the same ones.

        These keep them, unless they are to be erased ``everywhere``.
        """
        return withdraw(self, name, ids, by, everywhere=everywhere)

    def forget(self, name: str, *, window: int = UNDO_WINDOW) -> list[str]:
        """Overwrite what turned out negative and is final; the ids of what was forgotten now."""
        about = self.store.about(name)
        if not about.get("own"):
            raise InputError(f"{name}: was not made with forget_negatives; its pool may serve other campaigns")
        with self.open(name) as campaign:
            return campaign.forget(window)

    def remove(self, name: str) -> None:
        """Remove a campaign; its pool stays if others use it."""
        about = self.store.about(name)
        with arranging(self.folder):
            self.store.remove(name)
            self._drop_files(about)

    def close(self) -> None:
        """Close the store."""
        self.people.close()
        if self._store is not None:
            self._store.close()
            self._store = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_files(self, about: dict[str, Any]) -> None:
        """Remove what belongs to a campaign that is gone; a pool stays if others use it."""
        if not any(self.store.about(other)["pool"] == about["pool"] for other in self.names()):
            shutil.rmtree(self.folder / about["pool"], ignore_errors=True)
        if about.get("outside"):
            (self.folder / about["outside"]).unlink(missing_ok=True)

    def _campaign(self, name: str, about: dict[str, Any], **settings: Any) -> Campaign:
        pool = PoolFolder(self.folder / about["pool"]).load()
        pool.whereabouts = lambda: self.folder / self.store.about(name)["pool"]
        # Logs of earlier versions do not hold the limits: then the store does.
        limits = {key: about[key] for key in ("lease", "budget", "target") if about.get(key) is not None}
        given = {key: value for key, value in settings.items() if value is not None or key not in limits}
        log = self.store.open(name)
        if "external_positives" not in given:
            given["external_positives"] = self._outside(name, pool, log)
        return Campaign(pool, log=log, **{**limits, **given})

    def _outside(self, name: str, pool: Pool, log: SqlLog) -> VectorsLike | None:
        """The known positives from outside that the log names."""
        path = self.folder / f"outside/{name}.npz"
        fresh = path.with_suffix(".new.npz")
        if fresh.exists():
            # Adding some was cut short: after it was written down, or before.
            recorded = [line["outside"] for line in log.read() if line["event"] == "outside"][-1:]
            if recorded == [pool.digest(pool.encode(load_outside(fresh)))]:
                fresh.replace(path)
                self.store.set_about(name, {**self.store.about(name), "outside": f"outside/{name}.npz"})
            else:
                fresh.unlink()
        return load_outside(path) if self.store.about(name).get("outside") else None

    def _take_in(self, source: str | Path | Pool | Intake, work: Path, *, header: bool, **how: Any) -> Intake | Pool:
        if isinstance(source, Pool | Intake):
            return source
        table = read_table(source, header=header)
        return make_pool(table, vectors_file=work / "vectors.npy", **how)


def _store_pool(work: Path, made: Intake | Pool, *, own: bool) -> None:
    """Store a pool in a work folder, with what made its vectors."""
    pool = made.pool if isinstance(made, Intake) else made
    files: dict[str, bytes] = {}
    if isinstance(made, Intake):
        made.recipe.save(work / "recipe")
        files = {path.name: path.read_bytes() for path in sorted((work / "recipe").iterdir())}
    # A hash of all contents would reveal something about rows that are to be forgotten.
    PoolFolder.create(work / "pool", pool, embedding_files=files, hash_contents=not own)


def _vectors_of(recipe: Recipe | None, source: str | Path | VectorsLike, header: bool) -> VectorsLike:
    """Vectors of positives from outside a pool, made as the pool's own rows were."""
    if not isinstance(source, str | Path):
        return source
    if recipe is None:
        raise InputError("known positives from outside a pool of vectors: give vectors, not a file")
    return recipe.read(read_table(source, header=header)).vectors


def _duplicates(made: Intake | Pool, given: bool | float, same: Sequence[str] | None) -> Duplicates:
    """What makes two items of a campaign duplicates."""
    pool = made.pool if isinstance(made, Intake) else made
    if same is None:
        columns = made.embedding.used_ if isinstance(made, Intake) else []
        same = [name for name in columns if name in pool.contents]
    fingerprints = pool.kind == "bits" and len(same) > 0
    return Duplicates(tuple(same), not fingerprints, None if isinstance(given, bool) else float(given))


def embedding_for(embed: str, learner: str | None, forgets: bool) -> str:
    """What ``auto`` means for a learner: learners that learn from all labels get the words as they are."""
    learns_from_all = not forgets and (learner is None or LEARNERS[learner].negatives == "all")
    return embed if embed != "auto" or learns_from_all else "auto:dense"


def _promise(certify: str | Rule | None, rule: str | None) -> Rule | None:
    """The rule that a campaign is to end by, if any."""
    if certify is None and rule is not None:
        raise InputError(f"the rule {rule!r} says how to certify: say what, as in 0.95@0.95")
    if isinstance(certify, Rule):
        return certify
    return None if certify is None else parse_guarantee(certify, rule or ControlQuantile.name)


def labels_of(made: Intake, positive: str) -> npt.NDArray[np.bool_]:
    """Known labels as yes and no."""
    if made.labels is None:
        raise InputError("the table has no label column: name one")
    found: npt.NDArray[np.bool_] = made.labels == positive
    if not found.any():
        raise InputError(f"no row has the label {positive!r}")
    return found
