"""What judges deployment files: kubernetes-validate, jsonschema and PyYAML, pinned in validators.txt.

They lie in a folder of their own and are put on the path of this process only.
"""

import importlib
import sys
from pathlib import Path

from . import python_tools

REQUIREMENTS = Path(__file__).with_name("validators.txt")


def yaml():
    return load("yaml")


def load(name):
    """A module of these packages."""
    folder = str(install())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def install():
    return python_tools.install(REQUIREMENTS, "validators", "the validators of deployment files")
