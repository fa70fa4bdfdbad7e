"""Starts the module behind a script: `scripts/up` runs `devstack/up.py`, and so on.

Older versions of Python must be able to parse this file, so that it can report the version it needs.
"""

import sys


def run(module, *arguments):
    """Calls `main(*arguments)` of a module."""
    if sys.version_info < (3, 11):
        sys.exit("Retouch needs Python 3.11 or newer; this is " + sys.version.split()[0] + ".")
    # Like -B in the shebang, for callers that run `python3 scripts/up`.
    sys.dont_write_bytecode = True
    from importlib import import_module

    from .console import report_problems

    main = import_module(module).main
    # Checks use no files that their user names: one that cannot be used is a fault of ours.
    report_problems(lambda: main(*arguments), names_files=not module.startswith("checks."))
