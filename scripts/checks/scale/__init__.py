"""`scripts/test --only scale`: a database of millions of jobs, and how long everything takes on it."""

from .measure import run as run
