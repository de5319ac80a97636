"""A live campaign: ask for items by id, tell what they are, and ask for nothing twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from activecover.campaign._agreement import Agreement
from activecover.campaign._availability import Availability
from activecover.campaign._certificate import Certificate
from activecover.campaign._checks import check_person
from activecover.campaign._decisions import Decisions, Ids
from activecover.campaign._eraser import UNDO_WINDOW, Eraser
from activecover.campaign._guarantee import Guarantee
from activecover.campaign._items import Item, Status
from activecover.campaign._journal import Journal, Written
from activecover.campaign._leases import Leases
from activecover.campaign._mixer import Mixer
from activecover.campaign._opening import build_of, check_same, create, encode_outside, naming
from activecover.campaign._proposals import Proposals
from activecover.campaign._reports import Reports
from activecover.campaign._settings import Settings
from activecover.campaign._sight import Sight
from activecover.campaign._sources import Sources
from activecover.campaign._suspects import Suspects, Suspicion
from activecover.errors import InputError
from activecover.learners import Learner, check_sample
from activecover.pool import Duplicates, Pool, VectorsLike
from activecover.stopping import Assessment, Rule
from activecover.store import JSON, EventLog, Line, events, open_log
from activecover.trace import Trace


class Campaign:
    """Find the positives of a pool by asking for one label after the other.

    Parameters
    ----------
    pool : Pool
        The items.
    learner : str or Learner, optional
        Decides what to ask for; by default the one in the log, or
        :func:`~activecover.learners.default_learner` for a new campaign.
    log : path or EventLog, optional
        Where the events go: a JSON Lines file, or memory by default. A log that has events already is resumed; its
        settings then hold, and different ones given here are refused, except for limits.
    seed : int, optional
        Of all randomness. Anyone who knows it can work out the control rows, so a campaign that draws some
        (``certify``) has by default a random seed and a secret key; other campaigns have 0.
    explore : int or sequence of int, optional
        How many rows to label at random first, or which; 100 by default.
    budget : int, optional
        Most labels to ask for. Like ``target`` and ``lease``, it is recorded, and one given when a log is resumed
        holds for as long as that is open.
    target : int, optional
        Number of positives after which to stop.
    known : sequence of str
        Ids of items known to be positive.
    external_positives : array, optional
        Vectors of positives that are not in the pool. They must be given again when a log is resumed.
    lease : float, optional
        Seconds after which an item that was asked for and not answered goes back; never by default.
    default_lease : float, optional
        The lease of a campaign that was begun without one.
    think_ahead : bool
        Find the next item for either answer while a person looks at one, so that :meth:`answer` returns at once.
        Items and their order are the same.
    overlap : int, optional
        How many people have to give the same label before it counts; 1 by default.
    forget_negatives : bool
        Whether negatives are forgotten once they are final: their vectors and contents are overwritten in the
        pool's files, and the log does not name the positive that an item was near to.
    duplicates : Duplicates, optional
        What makes two items duplicates; a group of them is asked for once and labelled together. By default
        every item is asked for by itself.
    certify : Rule or str, optional
        What to certify before the campaign ends: a valid rule, or ``0.95@0.95`` for recall .95 with confidence
        .95 by a blind control sample. The draws that the rule needs are mixed into what people see.
    random_share : float, optional
        Share of the asks that are drawn uniformly until the campaign ends, so that a group of positives far from all
        others is found eventually.
    patience : float
        Seconds to wait for proposals from the process that runs the learner, if that is another one.
    clock : callable
        The time, in seconds.

    Examples
    --------
    >>> pool = Pool([[0.0], [9.0], [1.0], [8.0]], ids=["a", "b", "c", "d"])
    >>> campaign = Campaign(pool, "explore-commit", explore=0, known=["a"])
    >>> [item.id for item in campaign.ask(2)]
    ['c', 'd']
    >>> campaign.tell(["c", "d"], [True, False])
    >>> campaign.status().positives
    1
    >>> campaign.undo()
    ['d']
    """

    def __init__(
        self,
        pool: Pool,
        learner: str | Learner | None = None,
        *,
        log: EventLog | str | Path | None = None,
        seed: int | None = None,
        explore: int | Sequence[int] | None = None,
        budget: int | None = None,
        target: int | None = None,
        known: Sequence[str] = (),
        external_positives: VectorsLike | None = None,
        lease: float | None = None,
        default_lease: float | None = None,
        think_ahead: bool = False,
        overlap: int | None = None,
        forget_negatives: bool = False,
        duplicates: Duplicates | None = None,
        certify: Rule | str | None = None,
        random_share: float | None = None,
        patience: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(known, str):
            raise InputError(f"known {known!r}: give a list of ids")
        given = Settings.given(
            learner, seed=seed, explore=explore, budget=budget, target=target, lease=lease, overlap=overlap,
            forget_negatives=forget_negatives, duplicates=duplicates, certify=certify, random_share=random_share,
        )  # fmt: skip
        self.pool = pool
        self.external_positives = None if external_positives is None else encode_outside(pool, external_positives)
        self._own_learner = learner if isinstance(learner, Learner) else None
        self._think_ahead, self._patience, self._default_lease = think_ahead, patience, default_lease
        self.log = open_log(log)
        self.journal = Journal(pool, self.log, clock)
        try:
            with naming(self.log):
                self._open(given, known)
        except BaseException:
            if hasattr(self, "proposals"):
                self.proposals.close()
            self.log.close()
            raise

    def _open(self, given: Settings, known: Sequence[str]) -> None:
        if not len(self.log):
            with self.journal.lock, self.log.turn():
                # Another process may have been faster.
                if not len(self.log):
                    settings = given.filled(self.pool)
                    new = create(self.journal, settings, known, self.external_positives)
                    self._compose(settings)
                    # The learner first: what it refuses must not leave a log behind.
                    self.proposals.own()
                    self.journal.restart()
                    self.journal.write(new)
                    return
        self.journal.load()
        settings = check_same(self.journal, given, known, self.external_positives)
        self._compose(settings)
        self.eraser.finish()

    def _compose(self, settings: Settings) -> None:
        """Make the parts of the campaign; each owns its state, and knows only the parts that it is given."""
        self.settings = settings
        build = build_of(self.journal, settings, self._own_learner)
        explore = settings.explore if settings.explore is not None else 0
        if not isinstance(explore, int):
            check_sample(explore, len(self.pool))
        created = self.journal.ledger.created
        assert created is not None
        rule, outside = settings.rule, self.external_positives
        mixer = Mixer.of(self.pool, created, rule)
        self._rows = Availability(self.journal)
        self.guarantee = Guarantee(self.journal, rule, mixer, settings.budget)
        self.proposals = Proposals(
            self.journal, self._rows, build, seed=settings.seed or 0, explore=explore, outside=outside,
            # What follows an item is not only the learner's choice if draws are mixed in.
            think_ahead=self._think_ahead and mixer is None,
        )  # fmt: skip
        sources = Sources(self.journal, self._rows, self.proposals, mixer, settings.explored)
        self.leases = Leases(
            self.journal, self._rows, sources, self.proposals, seconds=settings.lease or self._default_lease,
            patience=self._patience,
        )  # fmt: skip
        self.eraser = Eraser(self.journal, self.guarantee)
        self._decisions = Decisions(self.journal, self.leases, self.eraser)
        suspects = Suspects(self.journal, self._rows, self.guarantee, outside)
        #: The campaign as people may see it while control rows must stay unknown.
        self.sight = Sight(self)
        self._reports = Reports(self.journal, self._rows, self.proposals, self.guarantee, suspects, settings)

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, k: int = 1, by: str = "me", *, shown: str | None = None, avoid: Collection[str] = ()) -> list[Item]:
        """Lease up to ``k`` items to someone; asking again returns the same ones until they are told.

        An item that :meth:`peek_next` has ``shown`` to them is the first new one, unless somebody has it. Items to
        ``avoid``, and those shown to others, do not come.

        Items set aside (skipped, unsure) come back when nothing else is left. An empty list means that
        every item is labelled or that a limit has been reached: :meth:`status` tells which.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise InputError(f"ask for a number of items from 1, not {k!r}")
        check_person(by)
        while True:
            with self.journal.turn():
                items = self._ask(int(k), by, shown, avoid)
            if items is not None:
                return items
            # Another process runs the learner.
            self.leases.wait(int(k), by)

    def answer(self, id: str, label: object, by: str = "me", k: int = 1, *, shown: str | None = None) -> list[Item]:
        """Label an item and ask for the next, in one turn: what is written of both is committed once.

        Inside :meth:`together` or :meth:`once` it does not wait for the process that runs the learner, if that is
        another one: then nothing is returned, and :meth:`ask` has to follow.
        """
        with self.journal.turn():
            self.tell(id, label, by)
            items = self._ask(k, by, shown)
        if items is None:
            return [] if self.journal.in_turn else self.ask(k, by)
        return items

    def peek_next(self, id: str) -> dict[bool | None, Item]:
        """What :meth:`answer` will return for either answer to a leased item, and if it is put aside (None).

        The items are promised to the person who has the item: others do not get them for ten minutes. Nothing is
        leased. Unless that person has other items, it needs ``think_ahead``, and waits until the thought is there; an
        answer that was not thought of is missing.
        """
        with self.journal.view() as ledger:
            ask = ledger.asks.get(id)
            holder = ask.by if ask is not None and ask.state == "leased" else None
            waiting = [] if holder is None else [other for other in self.leases.of(holder) if other.id != id]
            if waiting:
                # What they have besides comes next, whatever the answer.
                return dict.fromkeys((True, False, None), self._reports.item(waiting[0]))
        thoughts: dict[bool | None, Any] = {} if holder is None else self.proposals.thought(id)
        with self.journal.lock:
            free = bool(thoughts) and self.leases.show(
                str(holder), {item.id: proposal for item, proposal in thoughts.values()}
            )
        # Someone may have got one of them before it was promised.
        return {answer: item for answer, (item, _) in thoughts.items()} if free else {}

    def _ask(self, k: int, by: str, shown: str | None = None, avoid: Collection[str] = ()) -> list[Item] | None:
        """What someone has, filled up with new items; None if those have to be waited for."""
        self.leases.expire()
        asks = self.leases.fill(k, self._reports.allowance(), by, shown, avoid)
        if asks is None:
            return None
        if len(asks) == 1:
            self.proposals.think(asks[0], self._reports.foreseen)
        return [self._reports.item(ask) for ask in asks]

    # -- answering ---------------------------------------------------------------------------------

    def tell(self, ids: Ids, labels: object, by: str = "me", *, change: bool = False, note: str | None = None) -> None:
        """Label items; several at once are taken whole or not at all.

        An item need not have been asked for. Telling the same again changes nothing; to tell something
        else, undo first, or mark it as a ``change`` of mind: the earlier decision stays in the
        history, and the learner is as if it had never been told. A ``note`` is kept with the labels.
        """
        self._decisions.tell(ids, labels, by, change=change, note=note)

    def skip(self, ids: Ids, by: str = "me") -> None:
        """Put items aside; they come back when nothing else is left."""
        self._decisions.put_aside(events.Skipped, ids, by)

    def mark_unsure(self, ids: Ids, by: str = "me") -> None:
        """Put items aside that cannot be decided on now; they come back when nothing else is left."""
        self._decisions.put_aside(events.Unsure, ids, by)

    def release(self, ids: Ids | None = None, by: str = "me") -> None:
        """Give back items that were asked for, skipped or unsure; without ids, all that someone has."""
        self._decisions.release(ids, by)

    def undo(self, count: int = 1, *, by: str | None = None) -> list[str]:
        """Take back the last decisions (of one person, if given), as if they had never been told.

        The items are leased again to the people who decided, so that :meth:`ask` shows them next.
        """
        return self._decisions.undo(count, by)

    def adjudicate(self, id: str, label: object, by: str = "me") -> None:
        """Decide on an item on which people disagree, or change an earlier adjudication.

        From then on the people who disagreed can neither change nor undo their opinions on it.
        """
        self._decisions.adjudicate(id, label, by)

    def confirm(self, ids: Ids, by: str = "me") -> None:
        """Confirm that positives are positive: they are no longer suspects."""
        self._decisions.confirm(ids, by)

    def ungroup(self, ids: Ids, by: str = "me") -> None:
        """Take items out of their groups of duplicates: from now on they are items of their own, without a label."""
        self._decisions.ungroup(ids, by)

    def once(self, request: str) -> AbstractContextManager[Written]:
        """A turn for a request with a name, and what an earlier request of that name has written, if anything.

        Clients that do not know whether a request arrived repeat it under the same name. The name is stored with the
        events, so that this works after a crash too.

        Examples
        --------
        >>> campaign = Campaign(Pool([[0.0], [1.0]]))
        >>> for _ in range(2):
        ...     with campaign.once("a name") as written:
        ...         if not written:
        ...             campaign.tell("0", True)
        >>> written
        [('asked', '0', None), ('told', '0', 1)]
        """
        return self.journal.once(request)

    def together(self) -> AbstractContextManager[None]:
        """A time in which nobody else writes: what is read in it still holds when something is written."""
        return self.journal.turn()

    def change_learner(self, learner: str, **parameters: JSON) -> None:
        """Let another learner propose from now on, or another version of the same one; all labels are kept.

        Examples
        --------
        >>> campaign = Campaign(Pool([[0.0], [1.0]]), "explore-commit")
        >>> campaign.change_learner("knn-posterior", n_neighbors=3)
        >>> campaign.learner_name, campaign.history()[-1]["params"]
        ('knn-posterior@1', {'n_neighbors': 3})
        """
        self.proposals.change_learner(learner, parameters)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def learner_name(self) -> str:
        """The learner by name and version."""
        return self.journal.ledger.learner

    def status(self) -> Status:
        """Counts, limits, and what stopped the campaign."""
        return self._reports.status()

    def labels(self) -> dict[str, bool]:
        """The labels so far, by id, in the order asked."""
        return self._reports.labels()

    def history(self, id: str | None = None) -> list[Line]:
        """All events as the log stores them, or those of one item, in order."""
        return self._reports.history(id)

    def records(self) -> list[dict[str, Any]]:
        """One record per item that was asked for: its label, who gave it, when, and why it was asked."""
        return self._reports.records()

    def trace(self) -> Trace:
        """What was asked and found so far."""
        return self._reports.trace(self.learner_name, self.settings.seed or 0)

    def conflicts(self) -> list[tuple[Item, dict[str, bool]]]:
        """Items on which people disagree, with each person's opinion."""
        return self._reports.conflicts()

    def agreement(self) -> Agreement:
        """The agreement of people who labelled the same items."""
        return self._reports.agreement()

    def suspects(self) -> list[Suspicion]:
        """Positives that deserve a second look, until someone confirms them or changes the label.

        A positive is suspicious if it lies far from all other positives, compared with how far these are apart
        (beyond the third quartile by three times the range between the quartiles, and twice the median), or if
        ten items that the learner asked for and that are negative lie nearer to it than any other positive. If
        negatives are forgotten, or control rows have to stay unknown, only the first can be detected.

        Examples
        --------
        >>> campaign = Campaign(Pool([[x / 10] for x in range(30)] + [[99.0]]), explore=0)
        >>> campaign.tell([*map(str, range(9)), "30"], [True] * 10)
        >>> [(doubt.item.id, doubt.reason) for doubt in campaign.suspects()]
        [('30', 'far from all other positives (98.2, they are 0.1 apart)')]
        >>> campaign.confirm("30")
        >>> campaign.suspects()
        []
        """
        return self._reports.suspects()

    # -- what is proved ----------------------------------------------------------------------------

    def assess(self, rule: Rule | None = None) -> Assessment:
        """What is proved of recall by now, on what assumptions, and the price of the target.

        Parameters
        ----------
        rule : Rule, optional
            By default the one that the campaign began with, or its budget if that comes first; weighted betting for
            .95 with confidence .95 if it began without one.

        Examples
        --------
        >>> campaign = Campaign(Pool([[0.0], [1.0], [2.0]]))
        >>> campaign.tell(["0", "1"], [True, False])
        >>> bound = campaign.assess()
        >>> bound.recall_lower, bound.remaining_upper
        (0.5, 1)
        """
        return self.guarantee.assess(rule)

    def certificate(self, rule: Rule | None = None, *, name: str | None = None) -> Certificate:
        """The statement to keep, once the log was found to be as it was written."""
        return self.guarantee.certificate(rule, name=name)

    # -- forgetting, and the end -------------------------------------------------------------------

    def forget(self, window: int = UNDO_WINDOW) -> list[str]:
        """Overwrite the negatives decided before the last ``window`` decisions; the ids of those forgotten now.

        A campaign that forgets does so by itself, after every few decisions and when it is closed.
        """
        return self.eraser.forget(window)

    def close(self, *, window: int | None = UNDO_WINDOW) -> None:
        """Close the log and the learner.

        A campaign that forgets first forgets what was decided before the last ``window`` decisions: with 0 all of it,
        so that nothing can be undone, and with None nothing.
        """
        if not self.proposals.closed:
            self.eraser.close(window)
        self.proposals.close()
        with self.journal.lock:
            self.log.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
