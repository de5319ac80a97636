"""Old names that still work for a while, with one warning that says what to use instead.

See ``docs/deprecation.md`` for how long an old name lasts.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["deprecated", "renamed_parameter", "warn_deprecated"]

P = ParamSpec("P")
R = TypeVar("R")


def warn_deprecated(name: str, *, since: str, removal: str, instead: str, stacklevel: int = 2) -> None:
    """Warn that a name will be removed.

    The category is ``FutureWarning``, which Python shows by default, because the callers are users of the package.

    Parameters
    ----------
    name : str
        What is deprecated, as users write it.
    since : str
        First version that warns.
    removal : str
        First version without the name.
    instead : str
        What to use now.
    stacklevel : int
        Frames between the user's code and this function; 2 for a direct caller's caller.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("Pool.size", since="0.2", removal="0.4", instead="len(pool)")
    >>> print(caught[0].message)
    Pool.size is deprecated since 0.2 and will be removed in 0.4: use len(pool)
    """
    message = f"{name} is deprecated since {since} and will be removed in {removal}: use {instead}"
    warnings.warn(message, FutureWarning, stacklevel=stacklevel + 1)


def deprecated(*, since: str, removal: str, instead: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function or method as deprecated: it works as before and warns on every call.

    Parameters
    ----------
    since, removal, instead : str
        As for `warn_deprecated`.

    Examples
    --------
    >>> @deprecated(since="0.2", removal="0.4", instead="double")
    ... def twice(number):
    ...     return 2 * number
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     twice(4)
    8
    >>> print(caught[0].message)
    twice is deprecated since 0.2 and will be removed in 0.4: use double
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            warn_deprecated(function.__qualname__, since=since, removal=removal, instead=instead)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def renamed_parameter(
    old: str, new: str, *, since: str, removal: str
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Accept a keyword argument under its old name, with a warning.

    Parameters
    ----------
    old, new : str
        Former and present name of the parameter.
    since, removal : str
        As for `warn_deprecated`.

    Examples
    --------
    >>> @renamed_parameter("n", "count", since="0.2", removal="0.4")
    ... def stars(*, count):
    ...     return "*" * count
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     stars(n=3)
    '***'
    >>> print(caught[0].message)
    stars(n=...) is deprecated since 0.2 and will be removed in 0.4: use count
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> R:
            if old in kwargs:
                name = f"{function.__qualname__}({old}=...)"
                if new in kwargs:
                    raise TypeError(f"{function.__qualname__}() got both {old!r} and {new!r}: use {new!r}")
                warn_deprecated(name, since=since, removal=removal, instead=new)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return wrapper

    return decorate
