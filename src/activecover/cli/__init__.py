"""The ``activecover`` command."""

from activecover.cli._start import main

__all__ = ["main"]
