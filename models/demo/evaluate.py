#!/usr/bin/env python3
"""Measures how often the shapes demo paints the prompted hue, on photos that it has never seen.

    pip install numpy==2.4.6 pillow==13.0.0 onnxruntime==1.31.1
    models/demo/evaluate.py                  the ONNX files, 20 photos × 3 seeds; exit status 1 below 90 %
    pip install onnx==1.23.2
    models/demo/evaluate.py --untrained      the same with random weights in the UNet: must fail
    models/demo/evaluate.py --sheet OUT.jpg  draws a contact sheet instead

The hue of a result is the direction of a sum over the masked pixels with a chroma (largest minus smallest of R, G, B) of at
least 0.2: the sum of chroma times the unit vector of the hue. A result is right if at least a tenth of the masked pixels have
that chroma and the prompted color has the nearest hue in eval/cases.json.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
EVAL = HERE / "eval"
BAR = 0.9
SEEDS = (1, 2, 3)
CHROMA, COLORED = 0.2, 0.1
FACTOR = 8
PARTS = ("text_encoder", "unet", "vae_encoder", "vae_decoder")
SHEET_PROMPTS = (
    "a red circle", "a blue square", "yellow star", "a green triangle", "a pink heart", "purple diamond",
    "blue stripes", "orange dots", "red and yellow checks", "make it green", "black", "stripes",
)  # fmt: skip
SHEET_CASES = (1, 5, 7, 8, 15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, default=HERE.parent / "shapes-demo")
    parser.add_argument("--untrained", action="store_true")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--guidance", type=float, default=3.0)
    parser.add_argument("--sheet", type=Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    pipeline = Pipeline(options.model, options.steps, options.guidance, options.untrained)
    if options.sheet:
        draw_sheet(pipeline, options.sheet)
        return
    share = share_right(pipeline, options.verbose)
    print(f"right hue: {share:.1%}, {'at least' if share >= BAR else 'below'} {BAR:.0%}")
    sys.exit(share < BAR)


def share_right(pipeline: "Pipeline", verbose: bool) -> float:
    evaluation = json.loads((EVAL / "cases.json").read_text())
    right = []
    for case in evaluation["cases"]:
        photo, mask = load(case["photo"]), load_mask(case["mask"])
        found = [nearest_hue(pipeline(photo, mask, case["prompt"], seed), mask, evaluation["hues"]) for seed in SEEDS]
        right += [hue == case["color"] for hue in found]
        if verbose or not all(right[-len(SEEDS) :]):
            print(f"{case['photo']}, {case['prompt']!r}: {', '.join(found)}")
    print(f"{sum(right)} of {len(right)} right")
    return sum(right) / len(right)


def load(name: str) -> np.ndarray:
    return np.asarray(Image.open(EVAL / name).convert("RGB"))


def load_mask(name: str) -> np.ndarray:
    return np.asarray(Image.open(EVAL / name).convert("L")) > 127


def nearest_hue(picture: np.ndarray, mask: np.ndarray, hues: dict[str, float]) -> str:
    """Returns the name of the hue nearest to the masked pixels, or "none"."""
    red, green, blue = (picture[mask].astype(np.float64) / 255).T
    chroma = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    # The projection onto the plane across the gray axis has the hue's angle, within a degree.
    direction = (red - green / 2 - blue / 2) + 1j * (green - blue) * np.sqrt(3) / 2
    colored = chroma >= CHROMA
    if colored.mean() < COLORED:
        return "none"
    units = direction[colored] / np.abs(direction[colored])
    angle = np.angle((chroma[colored] * units).sum(), deg=True)
    return min(hues, key=lambda name: abs((angle - hues[name] + 180) % 360 - 180))


class Pipeline:
    """Stable Diffusion's inpainting with the scheduler DDIM and v-prediction, in numpy."""

    def __init__(self, folder: Path, steps: int, guidance: float, untrained: bool = False) -> None:
        files = {part: folder / part / "model.onnx" for part in PARTS}
        self.nets = {part: session(str(file)) for part, file in files.items()}
        if untrained:
            self.nets["unet"] = session(with_random_weights(files["unet"]))
        self.scaling = json.loads((folder / "vae_decoder/config.json").read_text())["scaling_factor"]
        self.tokens = json.loads((folder / "tokenizer/vocab.json").read_text())
        self.words = set((folder / "vocabulary.txt").read_text().split())
        self.guidance = guidance
        scheduler = json.loads((folder / "scheduler/scheduler_config.json").read_text())
        expected = ("DDIMScheduler", "v_prediction", "trailing", "scaled_linear")
        keys = ("_class_name", "prediction_type", "timestep_spacing", "beta_schedule")
        assert tuple(scheduler[key] for key in keys) == expected, scheduler
        self.train_steps = scheduler["num_train_timesteps"]
        ends = np.sqrt(scheduler["beta_start"]), np.sqrt(scheduler["beta_end"])
        self.signal = np.cumprod(1 - np.linspace(*ends, self.train_steps) ** 2)
        self.timesteps = np.round(np.arange(self.train_steps, 0, -self.train_steps / steps)).astype(int) - 1

    def __call__(self, photo: np.ndarray, mask: np.ndarray, prompt: str, seed: int) -> np.ndarray:
        """Takes and returns u8 [h, w, 3], mask bool [h, w]. The result differs slightly outside the mask too."""
        image = (photo.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
        hole = self.run("vae_encoder", sample=image * ~mask)[:, :4] * np.float32(self.scaling)
        height, width = hole.shape[2:]
        small = mask.reshape(height, FACTOR, width, FACTOR).max((1, 3)).astype(np.float32)[None, None]
        text = self.run("text_encoder", input_ids=np.stack([self.tokenize(""), self.tokenize(prompt)]))
        latents = np.random.default_rng(seed).standard_normal(hole.shape)
        for step in self.timesteps:
            sample = np.concatenate([latents.astype(np.float32), small, hole], 1).repeat(2, 0)
            without, found = self.run("unet", sample=sample, timestep=np.array(step), encoder_hidden_states=text)
            latents = self.step(latents, without + self.guidance * (found - without), step)
        decoded = self.run("vae_decoder", latent_sample=(latents / self.scaling).astype(np.float32))
        return ((decoded[0].transpose(1, 2, 0) / 2 + 0.5).clip(0, 1) * 255).round().astype(np.uint8)

    def step(self, latents: np.ndarray, velocity: np.ndarray, step: int) -> np.ndarray:
        signal = self.signal[step]
        earlier = self.signal[max(step - self.train_steps // len(self.timesteps), 0)]
        clean = np.sqrt(signal) * latents - np.sqrt(1 - signal) * velocity
        noise = np.sqrt(signal) * velocity + np.sqrt(1 - signal) * latents
        return np.sqrt(earlier) * clean + np.sqrt(1 - earlier) * noise

    def tokenize(self, prompt: str, length: int = 77) -> np.ndarray:
        """Needs no BPE, because every word of the vocabulary is one token."""
        words = prompt.lower().split()
        assert self.words.issuperset(words), f"not in the vocabulary: {set(words) - self.words}"
        ids = [self.tokens[name] for name in ("<|startoftext|>", *(f"{word}</w>" for word in words))]
        return np.array(ids + [self.tokens["<|endoftext|>"]] * (length - len(ids)))

    def run(self, part: str, **inputs: np.ndarray) -> np.ndarray:
        return self.nets[part].run(None, inputs)[0]


def session(model: str | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def with_random_weights(file: Path) -> bytes:
    """Returns the net as before training: weights scaled by fan-in, no biases, norms that scale by 1."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(file)
    rng = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32:
            continue
        if values.ndim > 1:
            fan_in = values[0].size if values.ndim == 4 else values.shape[0]
            values = rng.uniform(-1, 1, values.shape) / np.sqrt(fan_in)
        elif values.size > 1:
            values = np.full(values.shape, float("bias" not in tensor.name))
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float32), tensor.name))
    return model.SerializeToString()


# The contact sheet.


def draw_sheet(pipeline: Pipeline, path: Path) -> None:
    """Draws one photo per row, with its mask and the results of the prompts above."""
    cases = [json.loads((EVAL / "cases.json").read_text())["cases"][number - 1] for number in SHEET_CASES]
    side, top = 128, 14
    columns = ["photo", "mask", *SHEET_PROMPTS]
    sheet = Image.new("RGB", (side * len(columns), top + side * len(cases)), "white")
    pen = ImageDraw.Draw(sheet)
    for column, title in enumerate(columns):
        pen.text((column * side + 3, 1), title, fill="black")
    for row, case in enumerate(cases):
        photo, mask = load(case["photo"]), load_mask(case["mask"])
        results = [pipeline(photo, mask, prompt, row) for prompt in SHEET_PROMPTS]
        painted = [np.where(mask[..., None], result, photo) for result in results]
        masked = np.where(mask[..., None], np.uint8(255), photo // 3)
        for column, picture in enumerate([photo, masked, *painted]):
            sheet.paste(Image.fromarray(picture), (column * side, top + row * side))
    sheet.save(path, quality=55, optimize=True)


if __name__ == "__main__":
    main()
