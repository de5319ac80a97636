"""The ``activecover`` command."""

from activecover.cli._app import main

__all__ = ["main"]
