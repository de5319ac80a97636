"""Thinking ahead: while a person looks at an item, the next one is found for either answer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from activecover.learners._base import Held, Learner
from activecover.learners._labels import Flags, Labels, Proposal, Rows

#: Waking a thread costs the waker more than all else it does: for some seconds a thread looks for work itself.
_LOOK_SECONDS = 0.002
_LOOK_TIMES = 2500
#: Who has just given work is about to return to a person: work that began at once would take the interpreter from it.
_LET_GO_SECONDS = 0.001


def _as_it_is(proposal: Proposal) -> Proposal:
    return proposal


class _Worker:
    """A thread that does one thing after the other, and that is cheap to give something to do."""

    def __init__(self) -> None:
        self._tasks: deque[Callable[[], None] | None] = deque()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None

    def give(self, task: Callable[[], None]) -> None:
        self._tasks.append(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="activecover-ahead", daemon=True)
            self._thread.start()
        if not self._awake.is_set():
            self._awake.set()

    def stop(self) -> None:
        if self._thread is not None:
            self._tasks.append(None)
            self._awake.set()
            self._thread.join()

    def _run(self) -> None:
        looks = 0
        while True:
            if self._tasks:
                task = self._tasks.popleft()
                if task is None:
                    return
                time.sleep(_LET_GO_SECONDS)
                task()
                looks = 0
            elif looks < _LOOK_TIMES:
                looks += 1
                time.sleep(_LOOK_SECONDS)
            else:
                self._awake.clear()
                if not self._tasks:
                    self._awake.wait()
                looks = 0


class _Guess:
    """What to ask for next if a row turns out positive, and if it does not."""

    def __init__(self, number: int, row: int, sampled: bool, held: npt.ArrayLike) -> None:
        self.number, self.row, self.sampled = number, row, sampled
        #: The rows that will be held when the answer has come.
        self.held: Rows = np.sort(np.asarray(held, np.int64))
        #: By the answer; None stands for none, when the row is put aside.
        self.next: dict[bool | None, Proposal] = {}
        #: The same as the caller wants to have it.
        self.prepared: dict[bool | None, Any] = {}
        #: Whether exploration goes on, without an answer and with either.
        self.exploring: dict[bool | None, bool] = {}
        #: Whether the learner has been told already that the row is positive.
        self.told = False
        #: What it turned out to be.
        self.answer: bool | None = None
        # Held until the work is done; far cheaper to make than an event.
        self._busy = threading.Lock()
        self._busy.acquire()
        self._wrong: BaseException | None = None

    def find(self, work: Callable[[], None]) -> None:
        """Do the work of finding what is next; what goes wrong is said to who waits for it."""
        try:
            work()
        except BaseException as wrong:
            self._wrong = wrong
        self._busy.release()

    def wait(self) -> None:
        """Wait until the work is done."""
        with self._busy:
            pass
        if self._wrong is not None:
            raise self._wrong

    def labels(self, positive: bool) -> Labels:
        return Labels.of([self.number], [self.row], [positive], self.sampled)

    def is_about(self, labels: Labels) -> bool:
        return len(labels) == 1 and bool(
            labels.rows[0] == self.row and labels.numbers[0] == self.number and labels.sampled[0] == self.sampled
        )


class ThinkAhead:
    """A learner that uses the time in which nobody asks it anything.

    After :meth:`think` it finds, in a thread of its own, the proposal that follows either answer. When
    the answer comes, ``tell`` and ``propose`` return at once; the learner itself takes the answer in
    later. It answers exactly as the learner inside would: every other call waits until that is up to date.

    Parameters
    ----------
    learner : Learner
        One that has begun.

    Examples
    --------
    >>> from activecover.learners import ExploreCommit, Labels
    >>> from activecover.pool import Pool
    >>> learner = ThinkAhead(ExploreCommit(explore=[0]).begin(Pool([[0.0], [5.0], [1.0], [5.5]])))
    >>> learner.tell(Labels.of([0], [0], [True], True))
    >>> learner.propose(1).rows
    array([2])
    >>> learner.think(1, 2, sampled=False, held=[])
    >>> learner.tell(Labels.of([1], [2], [False], False))
    >>> learner.propose(1).rows
    array([1])
    """

    def __init__(self, learner: Learner) -> None:
        self.inner = learner
        self._guess: _Guess | None = None
        self._worker = _Worker()
        self._unlabelled = self._erasures = 0

    def think(
        self, number: int, row: int, sampled: bool, held: npt.ArrayLike, prepare: Callable[[Proposal], Any] = _as_it_is
    ) -> None:
        """Begin to find what follows the answer to one row that was just asked for, under a number.

        ``sampled`` says whether exploration drew it, ``held`` are the rows that will be held when the answer has
        come. What is found goes through ``prepare``, in the thread that thinks.
        """
        before, guess = self._guess, _Guess(number, row, sampled, held)
        same = before is not None and before.answer is None and (before.number, before.row) == (number, row)
        if before is not None and same and self._still_holds(before, guess.held):
            return
        self._unlabelled, self._erasures = self.unlabelled, self.inner.pool_.erasures
        self._guess = guess
        self._worker.give(lambda: guess.find(lambda: self._think(before, guess, prepare)))

    def tell(self, labels: Labels) -> None:
        """Fold in settled labels; one that was thought of costs nothing now."""
        guess = self._guess
        if guess is not None and guess.answer is None and guess.is_about(labels):
            guess.answer = bool(labels.positive[0])
            self._unlabelled -= 1
            return
        self._up_to_date().tell(labels)

    def propose(self, k: int, held: Held = ()) -> Proposal:
        """Up to ``k`` rows to ask for next."""
        guess = self._guess
        rows = np.asarray(list(held) if isinstance(held, set | frozenset) else held, np.int64)
        if k == 1 and guess is not None and guess.answer is not None and self._still_holds(guess, rows):
            guess.wait()
            return guess.next[guess.answer]
        return self._up_to_date().propose(k, rows)

    def _still_holds(self, guess: _Guess, held: npt.ArrayLike, open: bool = False) -> bool:
        """Whether the rows held are those that were thought of, with the row itself while it is ``open``."""
        expected = np.sort(np.append(guess.held, guess.row)) if open else guess.held
        rows = np.sort(np.asarray(held, np.int64))
        return self._erasures == self.inner.pool_.erasures and np.array_equal(rows, expected)

    def thought(self, row: int) -> dict[bool | None, Any]:
        """What follows either answer to a row, and none (None), as it was prepared, as soon as it is found.

        Nothing for a row that is not thought of, and no answer that nothing follows.
        """
        guess = self._guess
        if guess is None or guess.row != row or guess.answer is not None:
            return {}
        guess.wait()
        return dict(guess.prepared)

    def confirm(self, row: int, answer: bool) -> tuple[Any, Rows] | None:
        """Tell the answer to the row that was thought of: what follows it, prepared, and the rows that are held then.

        Nothing is told where that row was not thought of, or where nothing follows.
        """
        guess = self._guess
        if guess is None or guess.answer is not None or guess.row != row:
            return None
        guess.wait()
        if answer not in guess.prepared or self._erasures != self.inner.pool_.erasures:
            return None
        guess.answer = answer
        self._unlabelled -= 1
        return guess.prepared[answer], guess.held

    def untell(self, rows: npt.ArrayLike) -> None:
        """Take labels back."""
        self._up_to_date().untell(rows)

    def extend(self) -> None:
        """Take in the rows by which the pool has grown."""
        self._up_to_date().extend()

    def exploring(self, held: npt.ArrayLike = ()) -> bool:
        """Whether rows of the sample are left, or no positive is known yet."""
        guess = self._guess
        if guess is not None and self._still_holds(guess, held, guess.answer is None):
            # Who looks on must not cost the thought of who answers.
            guess.wait()
            return guess.exploring[guess.answer]
        return self._up_to_date().exploring(held)

    @property
    def unlabelled(self) -> int:
        """How many rows could still be asked for."""
        guess = self._guess
        return self._unlabelled if guess is not None else self.inner.unlabelled

    @property
    def explore(self) -> int | Sequence[int]:
        """The learner's own exploration."""
        return self.inner.explore

    @property
    def closed_(self) -> Flags:
        """Which rows are closed; a row that was told a moment ago may still be missing."""
        return self.inner.closed_

    def close(self) -> None:
        """Stop thinking."""
        self._up_to_date()
        self._worker.stop()

    def __repr__(self) -> str:
        return repr(self.inner)

    def _up_to_date(self) -> Learner:
        """The learner inside, with all that was told and nothing that was only guessed."""
        guess, self._guess = self._guess, None
        if guess is not None:
            guess.wait()
            self._take_in(guess)
        return self.inner

    def _think(self, before: _Guess | None, guess: _Guess, prepare: Callable[[Proposal], Any]) -> None:
        if before is not None:
            self._take_in(before)
        learner = self.inner
        held = np.append(guess.held, guess.row)
        guess.exploring[None] = guess.exploring[False] = learner.exploring(held)
        guess.next[None] = learner.propose(1, held)
        if learner.negatives == "none" and not learner.ordered:
            # That a row is negative says no more than that it need not be asked for again.
            guess.next[False] = guess.next[None]
        else:
            learner.tell(guess.labels(False))
            guess.next[False] = learner.propose(1, guess.held)
            guess.exploring[False] = learner.exploring(guess.held)
            learner.untell([guess.row])
        learner.tell(guess.labels(True))
        guess.told = True
        guess.next[True] = learner.propose(1, guess.held)
        guess.exploring[True] = learner.exploring(guess.held)
        for answer, found in guess.next.items():
            if len(found):
                # What follows no and what follows no answer at all is often the same.
                again = answer is not None and found is guess.next[None]
                guess.prepared[answer] = guess.prepared[None] if again else prepare(found)

    def _take_in(self, guess: _Guess) -> None:
        """Bring the learner from what was guessed to what turned out."""
        if guess.told and not guess.answer:
            self.inner.untell([guess.row])
        if guess.answer is not None and not (guess.told and guess.answer):
            self.inner.tell(guess.labels(guess.answer))
