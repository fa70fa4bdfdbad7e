"""Generates the types of the typed clients, and of the page, from the API's document."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import python_tools
from common.config import REPO
from common.console import Problem, line

GENERATOR = Path(__file__).with_name("client_types.txt")
DOCUMENT = REPO / "ui" / "src" / "api" / "openapi.json"
PYTHON = REPO / "clients" / "python" / "retouch_client" / "types.py"
TYPESCRIPT = (REPO / "ui" / "src" / "api" / "schema.ts", REPO / "clients" / "typescript" / "src" / "schema.ts")
OPTIONS = (
    *("--input-file-type=openapi", "--output-model-type=typing.TypedDict", "--target-python-version=3.11", "--disable-timestamp"),
    *("--use-schema-description", "--use-standard-collections", "--use-union-operator", "--enum-field-as-literal=all"),
    "--formatters=builtin",
)


def write():
    """Writes the types. The packages of the page must be installed."""
    line("• Writing the types of the page and of the clients …")
    for path, text in fresh().items():
        path.write_text(text)


def check():
    """Returns one sentence for each file that is out of date."""
    return [
        f"{path.relative_to(REPO)} is out of date: run scripts/generate"
        for path, text in fresh().items()
        if not path.exists() or path.read_text() != text
    ]


def fresh():
    """Returns the text of each generated file."""
    with tempfile.TemporaryDirectory() as folder:
        python, typescript = Path(folder, "types.py"), Path(folder, "schema.ts")
        packages = python_tools.install(GENERATOR, "client-types", "the generator of the Python client's types")
        environment = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
        run([sys.executable, "-m", "datamodel_code_generator", "--input", DOCUMENT, "--output", python, *OPTIONS], environment)
        run([REPO / "ui" / "node_modules" / ".bin" / "openapi-typescript", DOCUMENT, "-o", typescript], os.environ)
        return {PYTHON: without_extensions(python.read_text()), **dict.fromkeys(TYPESCRIPT, typescript.read_text())}


def without_extensions(text):
    """Imports everything from the standard library of Python 3.11, which has no closed dictionaries."""
    text = re.sub(r",\s*closed=True,?(?=\s*\))", "", text)
    return re.sub(r"^(from typing import .*)\n\nfrom typing_extensions import TypedDict$", r"\1, TypedDict", text, flags=re.MULTILINE)


def run(command, environment):
    try:
        ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise Problem(f"Cannot run {command[0]}: {error.strerror}.") from error
    if ended.returncode:
        raise Problem(f"{command[0]} failed:\n{ended.stdout}")
