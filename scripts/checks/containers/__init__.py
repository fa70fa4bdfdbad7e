"""Checks of the images and the Compose stack: static ones in `scripts/lint`, a run in an engine in `scripts/test-compose`."""
