"""How a log names a learner: by name and version with its parameters, so that anyone can build it again."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from activecover.errors import InputError
from activecover.learners._base import Learner
from activecover.learners._catalogue import LEARNERS, make_learner
from activecover.registry import Entry

#: What parameters were called when older logs were written.
ALIASES: Mapping[str, str] = {"neighbour": "n_neighbors", "neighbours": "n_neighbors", "sweeps": "max_iter"}


def learner_settings(learner: Learner) -> dict[str, Any]:
    """A registered learner as a log keeps it: its name, its version, its parameters.

    ``explore`` is left out: a log keeps that of its own, by id.

    Examples
    --------
    >>> from activecover.learners import KnnPosterior
    >>> learner_settings(KnnPosterior(explore=10, n_neighbors=9))
    {'learner': 'knn-posterior@1', 'params': {'n_neighbors': 9}}
    """
    entry = _entry_of(learner)
    if entry is None:
        raise InputError(f"{learner!r} is not registered, so nobody could build it again: register it")
    params = {name: value for name, value in learner.get_params().items() if name not in {"explore", *_preset(entry)}}
    try:
        kept: dict[str, Any] = json.loads(json.dumps(params))
    except (TypeError, ValueError) as wrong:
        raise InputError(f"{learner!r} has parameters that a log cannot keep ({wrong}): give plain values") from wrong
    return {"learner": entry.versioned, "params": kept}


def learner_from(settings: str | Mapping[str, Any], explore: int | Sequence[int] | None = None) -> Learner:
    """The learner that a log names, as this or an earlier version wrote it.

    Parameters
    ----------
    settings : str or mapping
        What :func:`learner_settings` gives; or, in older logs, ``name@version``, or the learner as it prints itself.
    explore : int or sequence of int, optional
        How many rows to label at random first, or which.

    Examples
    --------
    >>> learner_from({"learner": "knn-posterior@1", "params": {"n_neighbors": 9}}, explore=10)
    KnnPosterior(explore=10, n_neighbors=9)
    >>> learner_from("KnnPosterior(explore=100, neighbours=9)", explore=10)
    KnnPosterior(explore=10, n_neighbors=9)
    >>> learner_from("explore-commit@1")
    ExploreCommit(explore=100, frontier='auto')
    """
    name, params = _read(settings) if isinstance(settings, str) else (settings["learner"], settings.get("params", {}))
    known = {ALIASES.get(parameter, parameter): value for parameter, value in params.items()}
    return make_learner(name, **known, **({} if explore is None else {"explore": explore}))


def _read(text: str) -> tuple[str, dict[str, Any]]:
    if "(" not in text:
        return text, {}
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("not a learner")
        params = {str(given.arg): ast.literal_eval(given.value) for given in call.keywords}
        entry = next(entry for entry in LEARNERS if _built(entry).__name__ == call.func.id and _fits(entry, params))
    except (ValueError, SyntaxError, StopIteration) as wrong:
        raise InputError(f"the label log was made with a learner of your own: give it again ({text})") from wrong
    return entry.name, {name: value for name, value in params.items() if name not in {"explore", *_preset(entry)}}


def _entry_of(learner: Learner) -> Entry[Learner] | None:
    params = learner.get_params()
    return next((entry for entry in LEARNERS if _built(entry) is type(learner) and _fits(entry, params)), None)


def _built(entry: Entry[Learner]) -> Callable[..., Learner]:
    return entry.build.func if isinstance(entry.build, partial) else entry.build


def _preset(entry: Entry[Learner]) -> dict[str, Any]:
    """The parameters that a registered name stands for."""
    return dict(entry.build.keywords) if isinstance(entry.build, partial) else {}


def _fits(entry: Entry[Learner], params: Mapping[str, Any]) -> bool:
    return all(name in params and params[name] == value for name, value in _preset(entry).items())
