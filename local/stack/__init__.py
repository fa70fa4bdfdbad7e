"""Builds, starts, watches and stops everything Retouch needs on one machine. `scripts/*` are its doors."""
