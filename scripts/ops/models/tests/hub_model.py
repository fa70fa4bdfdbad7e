"""The tiny pipeline as other people publish theirs: in a repository on a hub, with an encoder that samples."""

import hashlib

from common.config import REPO

from .sampling_encoder import sampling

PIPELINE = REPO / "models/tiny/sd-inpaint"
REPOSITORY = "somebody/tiny-onnx"
TEMPLATE = """\
# A comment that stays.
name = "tiny-inpainting"
task = "sd-inpaint"
licence = "CreativeML-OpenRAIL-M"
commercial_use = true
attribution = "somebody"
homepage = "https://example.com"
demo = true
vocabulary = ["a", "red", "circle"]

[canvas]
side = 64
multiple_of = 16
fit = "scale"

[sampling]
steps = 4
guidance = 7.5

[strength]
edit = 1.0
add = 1.0

[source]
registry = "hub"
repository = "somebody/tiny-onnx"
revision = "main"
terms = "https://example.com/license"
duties = ["be kind", "tell your users"]
"""


def published():
    """Returns the files of the repository."""
    paths = [path for path in PIPELINE.rglob("*") if path.is_file()]
    kept = {path.relative_to(PIPELINE).as_posix(): path.read_bytes() for path in paths}
    parts = ("text_encoder/", "tokenizer/", "unet/", "vae_", "scheduler/", "model_index")
    found = {path: data for path, data in sorted(kept.items()) if path.startswith(parts)}
    # The tensor has another name in such exports; this one is as long.
    encoder = found["vae_encoder/model.onnx"].replace(b"latent_parameters", b"quantized_moments")
    found["vae_encoder/model.onnx"] = sampling(encoder)
    return found


def template(repository, stated=("unet/model.onnx",)):
    """Returns a template that lists every file, and states some checksums."""
    text = TEMPLATE
    for path, data in repository.items():
        text += f'\n[[source.files]]\npath = "{path}"\n'
        if path == "vae_encoder/model.onnx":
            text += f'convert = "moments"\nsource_sha256 = "{sha256(data)}"\nsize_bytes = {len(data)}\n'
        elif path in stated:
            text += f'sha256 = "{sha256(data)}"\nsize_bytes = {len(data)}\n'
    return text


def sha256(data):
    return hashlib.sha256(data).hexdigest()
