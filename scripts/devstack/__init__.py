"""Starts the whole of Retouch on one machine, watches it and stops it."""
