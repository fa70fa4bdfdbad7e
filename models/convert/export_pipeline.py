#!/usr/bin/env python3
"""Exports a Stable Diffusion inpainting pipeline to ONNX in half floats, and records vectors from diffusers.

    pip install --require-hashes -r models/convert/export.txt
    models/convert/export_pipeline.py SOURCE OUT [--revision COMMIT] [--variant fp16]

SOURCE is a folder in the layout of diffusers, or a repository on a hub. Only safetensors are read, because other weights may
run programs. `OUT/reference` gets what `retouch-worker models verify` compares with: diffusers runs the same weights in 32
bits, with recorded noise, on a small picture.
"""

import argparse
import importlib
import json
from pathlib import Path

import numpy as np
import torch
from diffusers import DDIMScheduler, DPMSolverMultistepScheduler, EulerDiscreteScheduler, StableDiffusionInpaintPipeline
from diffusers.models.autoencoders.vae import DiagonalGaussianDistribution
from optimum.exporters.onnx import onnx_export_from_model
from PIL import Image, ImageDraw

SIDE = 64
PROMPT, NEGATIVE = "a red flower in a blue vase, high quality", "blurry, low quality"
GUIDANCE = 7.5
# Name, scheduler, steps, strength.
CASES = (
    ("dpm", DPMSolverMultistepScheduler, 8, 1.0),
    ("dpm_strength06", DPMSolverMultistepScheduler, 8, 0.6),
    ("ddim", DDIMScheduler, 6, 1.0),
    ("euler", EulerDiscreteScheduler, 6, 1.0),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("out", type=Path)
    parser.add_argument("--revision")
    parser.add_argument("--variant")
    options = parser.parse_args()
    pipeline = StableDiffusionInpaintPipeline.from_pretrained(
        options.source,
        revision=options.revision,
        variant=options.variant,
        torch_dtype=torch.float16,
        use_safetensors=True,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    # The validation compares half floats with limits for 32 bits, and fails.
    onnx_export_from_model(pipeline, options.out, task="inpainting", do_validation=False, device="cpu")
    record(pipeline.to(dtype=torch.float32), options.out / "reference")


def record(pipeline, folder):
    folder.mkdir(parents=True)
    pipeline.set_progress_bar_config(disable=True)
    # Like Retouch, so that a seed gives the same picture everywhere.
    DiagonalGaussianDistribution.sample = lambda self, generator=None: self.mode()
    picture, mask = drawn()
    picture.save(folder / "image.png")
    mask.save(folder / "mask.png")
    shape = (1, pipeline.vae.config.latent_channels, SIDE // pipeline.vae_scale_factor, SIDE // pipeline.vae_scale_factor)
    noise = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    np.save(folder / "init_noise.npy", noise)
    replace_noise("diffusers.pipelines.stable_diffusion.pipeline_stable_diffusion_inpaint", torch.from_numpy(noise))
    record_text(pipeline, folder)
    settings = pipeline.scheduler.config
    cases = {}
    for name, scheduler, steps, strength in CASES:
        # Latents are never clipped; the default of DDIM is for models that work on pixels.
        pipeline.scheduler = scheduler.from_config(settings, clip_sample=False)
        cases[name] = run(pipeline, picture, mask, steps, strength, folder / f"{name}.npz")
    meta = {"prompt": PROMPT, "negative_prompt": NEGATIVE, "vae_scaling_factor": pipeline.vae.config.scaling_factor, "cases": cases}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1))


def drawn():
    """Returns a picture with shapes and a fade, and a mask with a round hole."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    fade = np.stack([rows * 4, columns * 4, 255 - (rows + columns) * 2], axis=-1) % 256
    picture = Image.fromarray(fade.astype(np.uint8), "RGB")
    ImageDraw.Draw(picture).rectangle([8, 30, 40, 58], fill=(200, 60, 40))
    mask = Image.new("L", (SIDE, SIDE), 0)
    ImageDraw.Draw(mask).ellipse([18, 20, 50, 46], fill=255)
    return picture, mask


def replace_noise(module, noise):
    importlib.import_module(module).randn_tensor = lambda shape, **options: noise.reshape(tuple(shape))


def record_text(pipeline, folder):
    length = pipeline.tokenizer.model_max_length
    ids = pipeline.tokenizer([NEGATIVE, PROMPT], padding="max_length", max_length=length, truncation=True, return_tensors="pt").input_ids
    np.save(folder / "input_ids.npy", ids.numpy().astype(np.int64))
    with torch.no_grad():
        np.save(folder / "prompt_embeds.npy", pipeline.text_encoder(ids)[0].numpy())


def run(pipeline, picture, mask, steps, strength, file):
    """Records a run of the whole pipeline, and returns its entry in meta.json."""
    latents = []

    def keep(pipeline, index, timestep, values):
        latents.append(values["latents"].numpy().copy())
        return {}

    made = pipeline(
        prompt=PROMPT,
        negative_prompt=NEGATIVE,
        image=picture,
        mask_image=mask,
        height=SIDE,
        width=SIDE,
        num_inference_steps=steps,
        guidance_scale=GUIDANCE,
        strength=strength,
        output_type="np",
        callback_on_step_end=keep,
    )
    scheduler = pipeline.scheduler
    sigmas = getattr(scheduler, "sigmas", None)
    np.savez_compressed(
        file,
        latents=np.concatenate(latents),
        image=made.images[0].astype(np.float32),
        timesteps=scheduler.timesteps.numpy().astype(np.float64),
        sigmas=np.zeros(0) if sigmas is None else sigmas.numpy().astype(np.float64),
    )
    config = {name: value for name, value in scheduler.config.items() if not name.startswith("_")}
    return {"class": type(scheduler).__name__, "steps": steps, "guidance": GUIDANCE, "strength": strength, "config": config}


if __name__ == "__main__":
    main()
