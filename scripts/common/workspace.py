"""The crates of the Cargo workspace."""

import functools
import tomllib

from .config import REPO


@functools.cache
def crates():
    """Returns the folders of the crates, relative to the repository, in the order of Cargo.toml."""
    return tuple(tomllib.loads((REPO / "Cargo.toml").read_text())["workspace"]["members"])
