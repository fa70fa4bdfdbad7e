"""Imports kubernetes-validate, jsonschema and PyYAML, pinned in validators.txt, from a separate folder."""

import importlib
import sys
from pathlib import Path

from common import python_tools

REQUIREMENTS = Path(__file__).with_name("validators.txt")


def yaml():
    return load("yaml")


def load(name):
    """Imports a module of these packages."""
    folder = str(install())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def install():
    return python_tools.install(REQUIREMENTS, "validators", "validators of deployment files")
