"""Finds the files of an exported pipeline in a folder, before anything is copied."""

import json
import re
from pathlib import Path

from common.console import Problem

from . import conversion, files

# The nets of pipelines. A pipeline has one of the first two.
DENOISERS = ("unet", "transformer")
UNET = "unet/model.onnx"
NETS = (*DENOISERS, "text_encoder", "text_encoder_2", "vae_encoder", "vae_decoder")
SETTINGS = ("tokenizer", "tokenizer_2", "scheduler")
LOOSE_SETTINGS = ("model_index.json", "scheduler_config.json")
SUFFIXES = {".json", ".txt", ".model"}
# What a pipeline of Stable Diffusion cannot do without.
REQUIRED = {"unet": ("text_encoder", "vae_encoder", "vae_decoder"), "transformer": ("vae_encoder", "vae_decoder")}
# Components of model_index.json that take no part in inpainting, and the one that is exported as two nets.
UNUSED = {"safety_checker", "feature_extractor", "image_encoder"}
AUTOENCODER = "vae"


class Pipeline:
    """The files of a pipeline. `files` maps the path in a model's folder to the file; `left_out` are those without a use."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {}
        if not folder.is_dir():
            raise Problem(f"{folder} is not a folder. Give the folder of an exported pipeline: the one with model_index.json.")
        self.refuse_unreadable()
        for part in NETS:
            self.add_net(part)
        self.require_nets()
        for part in SETTINGS:
            self.add_all(folder / part, part)
        for name in LOOSE_SETTINGS:
            if (folder / name).is_file():
                self.files[name] = folder / name
        self.require_settings()
        self.require_components()
        self.left_out = sorted(self.large_files() - {path.relative_to(folder).as_posix() for path in self.files.values()})

    @property
    def is_sdxl(self):
        return "text_encoder_2/model.onnx" in self.files

    @property
    def size_bytes(self):
        return sum(path.stat().st_size for path in self.files.values())

    def refuse_unreadable(self):
        """Refuses links that lead nowhere, and what a clone without Git LFS has in place of large files."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_symlink() and not path.exists():
                raise Problem(f"{path} is a link to {path.readlink()}, which does not exist. Restore that file, then run this again.")
            if path.is_file() and path.stat().st_size < 1000 and files.is_pointer(path):
                raise Problem(f"{path} is only a Git LFS pointer. Run `git lfs pull` in {self.folder}, then run this again.")

    def add_net(self, part):
        net = self.net(part)
        if net is None:
            return
        self.files[f"{part}/model.onnx"] = net
        for location in conversion.external_data(net):
            data = net.parent / location
            if Path(location).is_absolute() or ".." in Path(location).parts:
                raise Problem(f"{net} keeps tensors in {location!r}, outside its folder. Export it again with its data beside it.")
            if not data.is_file():
                raise Problem(f"{net} keeps tensors in {location!r}, but there is no {data}. Put that file beside the net.")
            self.files[f"{part}/{location}"] = data
        self.add_all(self.folder / part, part)

    def net(self, part):
        """Returns the ONNX file of a part: `unet/model.onnx`, or in a flat folder `unet.onnx` or such as `unet_fp16.onnx`."""
        inside = self.folder / part / "model.onnx"
        if inside.is_file():
            return inside
        found = [path for path in sorted(self.folder.glob("*.onnx")) if part_of(path.stem) == part]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise Problem(f"{self.folder} has several files for {part}: {names}. Remove all but the one to use.")
        return found[0] if found else None

    def add_all(self, folder, part):
        """Adds the settings in a part's folder."""
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            name = path.relative_to(folder)
            if path.is_file() and path.suffix in SUFFIXES and not any(word.startswith(".") for word in name.parts):
                self.files[f"{part}/{name.as_posix()}"] = path

    def require_nets(self):
        denoisers = [part for part in DENOISERS if f"{part}/model.onnx" in self.files]
        if not denoisers and any(self.folder.rglob("*.safetensors")):
            raise Problem(
                f"{self.folder} holds weights that were never exported to ONNX. Export them first: models/text-guided.md says how, and "
                "`scripts/models export` does it for models that it knows."
            )
        if not denoisers:
            raise Problem(
                f"{self.folder} is not a pipeline: it has neither unet/model.onnx nor transformer/model.onnx, nor unet.onnx or "
                "transformer.onnx in a flat layout."
            )
        for part in REQUIRED[denoisers[0]]:
            self.require(f"{part}/model.onnx", f"a pipeline with a {denoisers[0]} needs it")

    def require_settings(self):
        """Stable Diffusion is opened by these files. Those of FLUX.2 depend on the export."""
        if UNET not in self.files:
            return
        for path in ("model_index.json", "scheduler/scheduler_config.json", "tokenizer/", *(["tokenizer_2/"] if self.is_sdxl else [])):
            if not any(file.startswith(path) for file in self.files):
                raise Problem(f"{self.folder} has no {path}, but a pipeline with a unet needs it. Copy it from the original model.")

    def require_components(self):
        index = self.folder / "model_index.json"
        try:
            components = json.loads(index.read_text()) if index.is_file() else {}
        except (ValueError, UnicodeDecodeError) as error:
            raise Problem(f"{index} is not valid JSON: {error}. Download it again.") from None
        for name, value in components.items():
            if name.startswith("_") or name in UNUSED or not (isinstance(value, list) and value and value[0]):
                continue
            if name in NETS:
                self.require(f"{name}/model.onnx", f"model_index.json names {name}")
            elif name not in (*SETTINGS, AUTOENCODER):
                raise Problem(f"model_index.json names the component {name}, which no pipeline that Retouch supports has.")
            elif name != AUTOENCODER and not any(path.startswith(f"{name}/") or path == f"{name}_config.json" for path in self.files):
                raise Problem(f"{self.folder} has no {name}/, but model_index.json names {name}. Copy that folder from the original model.")

    def require(self, path, reason):
        if path not in self.files:
            raise Problem(f"{self.folder} has no {path}, but {reason}. Export the whole pipeline, and give its folder.")

    def large_files(self):
        """Returns the nets and their data, as paths in the folder."""
        found = [path for path in self.folder.rglob("*") if path.is_file() and is_large(path)]
        return {path.relative_to(self.folder).as_posix() for path in found}


def part_of(stem):
    """Returns the part that a net in a flat layout is: `text_encoder_2_fp16` is text_encoder_2."""
    fitting = [part for part in NETS if re.fullmatch(rf"{part}([_.-].*)?", stem)]
    return max(fitting, key=len, default=None)


def is_large(path):
    return path.suffix in {".onnx", ".onnx_data", ".data", ".pb", ".bin", ".safetensors"} and not path.name.startswith(".")
