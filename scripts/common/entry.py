"""Starts the program behind a script: `scripts/up` is `devstack/up.py`, and so on.

Python older than 3.11 must be able to read this file, so that it can say that it is too old.
"""

import sys


def run(module, *arguments):
    """Calls `main(*arguments)` of a module; a `Problem` and Ctrl-C end with one line instead of a stack trace."""
    if sys.version_info < (3, 11):
        sys.exit("Retouch needs Python 3.11 or newer; this is " + sys.version.split()[0] + ".")
    # The shebang's -B does the same, unless somebody starts the script with `python3 scripts/up`.
    sys.dont_write_bytecode = True
    from importlib import import_module

    from .say import report_problems

    main = import_module(module).main
    report_problems(lambda: main(*arguments))
