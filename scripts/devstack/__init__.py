"""Starts Retouch on one machine, supervises it and stops it."""
