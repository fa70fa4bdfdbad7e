"""Capacity planning: simulates workers and their queue from measured times."""
