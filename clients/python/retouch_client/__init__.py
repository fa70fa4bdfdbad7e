"""A client of Retouch: uploads pictures, runs tools and waits, saves results. Needs Python 3.11 and nothing else."""

from .client import Canceled, Refused, ResultDeleted, Retouch, RetouchError, RunFailed, Unreachable

__all__ = ["Canceled", "Refused", "ResultDeleted", "Retouch", "RetouchError", "RunFailed", "Unreachable"]
