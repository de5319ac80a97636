"""What can go wrong, said in one line each."""

from __future__ import annotations

__all__ = ["ActiveCoverError", "InputError", "MissingExtra", "NotAvailable", "StoreError"]


class ActiveCoverError(Exception):
    """Base of every error that activecover raises on purpose: its message is one line for the user."""


class InputError(ActiveCoverError, ValueError):
    """The input is wrong: the message says what, where, and what to do."""


class StoreError(ActiveCoverError, OSError):
    """The label log could not be read or written; what was acknowledged before is still there."""


class MissingExtra(ActiveCoverError, ImportError):
    """An optional dependency is needed and not installed."""


class NotAvailable(ActiveCoverError):
    """A model cannot be fitted to what is known so far (too few positives, a singular covariance)."""
