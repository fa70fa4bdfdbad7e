#!/usr/bin/env python3
"""Trains the shapes demo from scratch and writes it as an ONNX folder to models/shapes-demo.

    pip install -r models/demo/requirements.txt
    models/demo/train.py [vae] [latents] [unet] [export]      (default: all four, in this order)

Takes about half an hour on one CPU core. Each stage starts from the files of the previous one in the work folder (--work).
"""

import argparse
import math
import os
import time
from pathlib import Path

# Waiting threads sleep, because other programs may be running.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch
from torch.nn import functional

from captions import caption, vocabulary
from nets import (
    FACTOR,
    SCALING,
    SIDE,
    TOKENS,
    export,
    make_scheduler,
    make_text_encoder,
    make_unet,
    make_vae,
    write_tokenizer,
)
from scenes import Scene, load_photos, make_scene

DEMO = Path(__file__).resolve().parents[1] / "shapes-demo"
STAGES = ("vae", "latents", "unet", "export")
VAE_SCENES, VAE_STEPS, VAE_RATE = 4000, 1800, 1.5e-3
# From this step on, the autoencoder sees whole pictures; before, crops of 64 pixels.
VAE_WHOLE_FROM = 1500
SCENES = 9000
UNET_STEPS, UNET_BATCH, UNET_RATE = 3500, 16, 1e-3
WITHOUT_CAPTION = 0.1
# The rest of the picture is composited from the photo, so the UNet's output there matters little.
WEIGHT_OUTSIDE = 0.15
EMA = 0.998
LOG_EVERY, SAVE_EVERY = 100, 250


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stages", nargs="*", default=STAGES)
    parser.add_argument("--work", type=Path, default=Path("/tmp/shapes-demo"))
    parser.add_argument("--out", type=Path, default=DEMO)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    run = {"vae": train_vae, "latents": encode_scenes, "unet": train_unet, "export": write_demo}
    for stage in options.stages:
        torch.manual_seed(1)
        started, used = time.time(), time.process_time()
        run[stage](options)
        taken = (time.time() - started) / 60
        print(f"{stage}: {taken:.1f} minutes, {(time.process_time() - used) / 60:.1f} of CPU time", flush=True)


# The autoencoder.


def train_vae(options: argparse.Namespace) -> None:
    """Trains with L1 on pixels, on their differences and on a small copy, for sharp edges and true colors."""
    rng = np.random.default_rng(1)
    photos = load_photos()
    pictures = [picture_or_hole(make_scene(photos, rng, varied=True), rng) for _ in range(VAE_SCENES)]
    vae = make_vae().train()
    optimizer = torch.optim.AdamW(vae.parameters(), VAE_RATE, betas=(0.9, 0.99), weight_decay=1e-4)
    log = Log("vae", VAE_STEPS)
    for step in range(VAE_STEPS):
        set_rate(optimizer, VAE_RATE, step, VAE_STEPS)
        side, batch = (64, 16) if step < VAE_WHOLE_FROM else (SIDE, 4)
        images = torch.stack([random_crop(pictures[i], side, rng) for i in rng.integers(0, VAE_SCENES, batch)])
        posterior = vae.encode(images.to(memory_format=torch.channels_last)).latent_dist
        copies = vae.decode(posterior.sample()).sample
        loss = picture_loss(copies, images) + 1e-5 * posterior.kl().mean() / (side / FACTOR) ** 2
        descend(loss, vae.parameters(), optimizer)
        log(step, loss)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == VAE_STEPS:
            torch.save(vae.state_dict(), options.work / "vae.pt")


def picture_or_hole(scene: Scene, rng: np.random.Generator) -> np.ndarray:
    """Returns the picture, sometimes with its masked part gray, as the UNet sees it."""
    if rng.random() < 0.2:
        return np.where(scene.mask[..., None], np.uint8(128), scene.picture)
    return scene.picture


def random_crop(picture: np.ndarray, side: int, rng: np.random.Generator) -> torch.Tensor:
    row, column = rng.integers(0, SIDE - side + 1, 2)
    crop = picture[row : row + side, column : column + side]
    return to_image(crop[:, ::-1] if rng.random() < 0.5 else crop)


def to_image(pixels: np.ndarray) -> torch.Tensor:
    """Converts u8 [h, w, 3] to f32 [3, h, w] in -1..1."""
    return torch.from_numpy(pixels.astype(np.float32).transpose(2, 0, 1) / 127.5 - 1)


def picture_loss(copies: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    difference = copies - images
    edges = difference.diff(dim=2).abs().mean() + difference.diff(dim=3).abs().mean()
    return difference.abs().mean() + 0.5 * edges + functional.avg_pool2d(difference, FACTOR).abs().mean()


# Scenes as latents.


@torch.no_grad()
def encode_scenes(options: argparse.Namespace) -> None:
    vae = make_vae().eval()
    vae.load_state_dict(torch.load(options.work / "vae.pt"))
    rng = np.random.default_rng(2)
    photos = load_photos()
    targets, holes, masks, requests = [], [], [], []
    for start in range(0, SCENES, 50):
        scenes = [make_scene(photos, rng) for _ in range(50)]
        images = torch.stack([to_image(scene.picture) for scene in scenes])
        mask = torch.from_numpy(np.stack([scene.mask for scene in scenes])).float()[:, None]
        targets.append(encode(vae, images))
        holes.append(encode(vae, images * (mask < 0.5)))
        masks.append(torch.cat([functional.max_pool2d(mask, FACTOR), mask[:, :, ::FACTOR, ::FACTOR]], 1))
        requests += [scene.request for scene in scenes]
        if start % 1000 == 0:
            print(f"latents: {start} of {SCENES}", flush=True)
    target = torch.cat(targets)
    whiten(vae, target)
    torch.save(vae.state_dict(), options.work / "vae-whitened.pt")
    mean, deviation = channel_statistics(target)
    latents = {
        "target": (target - mean) / deviation,
        "hole": (torch.cat(holes) - mean) / deviation,
        "mask": torch.cat(masks),
        "requests": requests,
    }
    torch.save(latents, options.work / "latents.pt")


def encode(vae, images: torch.Tensor) -> torch.Tensor:
    return vae.encode(images.to(memory_format=torch.channels_last)).latent_dist.mean.contiguous()


def channel_statistics(latents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    mean = latents.mean((0, 2, 3), keepdim=True)
    return mean, latents.std((0, 2, 3), keepdim=True)


def whiten(vae, latents: torch.Tensor) -> None:
    """Rescales the latents to mean 0 and standard deviation 1 / SCALING in every channel; decoding stays the same."""
    mean, deviation = (statistic.flatten() for statistic in channel_statistics(latents))
    gain = 1 / (SCALING * deviation)
    inner, outer = vae.quant_conv, vae.post_quant_conv
    inner.weight[:4] *= gain[:, None, None, None]
    inner.bias[:4] = (inner.bias[:4] - mean) * gain
    inner.bias[4:] += 2 * gain.log()
    outer.bias += outer.weight[:, :, 0, 0] @ mean
    outer.weight /= gain[None, :, None, None]


# The UNet and the text encoder, trained together.


def train_unet(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(3)
    data = torch.load(options.work / "latents.pt", weights_only=False)
    tokenizer = write_tokenizer(vocabulary(), options.work / "tokenizer")
    nets = torch.nn.ModuleDict({"text": make_text_encoder(tokenizer), "unet": make_unet()}).train()
    average = {name: value.clone() for name, value in nets.state_dict().items()}
    optimizer = torch.optim.AdamW(nets.parameters(), UNET_RATE, betas=(0.9, 0.99), weight_decay=1e-3)
    signal = make_scheduler().alphas_cumprod
    begin = resume(options.work / "unet.state", nets, average, optimizer, rng)
    log = Log("unet", UNET_STEPS)
    for step in range(begin, UNET_STEPS):
        set_rate(optimizer, UNET_RATE, step, UNET_STEPS, flat=2 / 3)
        loss = unet_loss(nets, tokenizer, signal, *random_batch(data, rng), rng)
        descend(loss, nets.parameters(), optimizer)
        follow(average, nets, min(EMA, (step + 1) / (step + 10)))
        log(step, loss)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == UNET_STEPS:
            save(options.work / "unet.state", step + 1, nets, average, optimizer, rng)
            torch.save(average, options.work / "unet.pt")


def save(path: Path, step: int, nets, average: dict, optimizer, rng: np.random.Generator) -> None:
    """Saves all that the next step depends on, so that an interrupted run ends like an uninterrupted one."""
    chance = rng.bit_generator.state, torch.get_rng_state()
    torch.save((step, nets.state_dict(), average, optimizer.state_dict(), chance), path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def resume(path: Path, nets, average: dict, optimizer, rng: np.random.Generator) -> int:
    """Returns the step to continue with: 0 unless a run was interrupted."""
    if not path.exists():
        return 0
    step, weights, averaged, state, chance = torch.load(path, weights_only=False)
    nets.load_state_dict(weights)
    average.update(averaged)
    optimizer.load_state_dict(state)
    rng.bit_generator.state = chance[0]
    torch.set_rng_state(chance[1])
    return step


def random_batch(data: dict, rng: np.random.Generator) -> tuple:
    """Returns targets, holes, masks and captions. Masks are max-pooled, as in our worker, or sampled, as elsewhere."""
    chosen = rng.integers(0, SCENES, UNET_BATCH)
    pooled = torch.from_numpy(rng.random(UNET_BATCH) < 0.6)[:, None, None, None]
    both = data["mask"][chosen]
    requests = [data["requests"][i] for i in chosen]
    texts = ["" if rng.random() < WITHOUT_CAPTION else caption(request, rng) for request in requests]
    return data["target"][chosen], data["hole"][chosen], torch.where(pooled, both[:, :1], both[:, 1:]), texts


def unet_loss(nets, tokenizer, signal, target, hole, mask, texts, rng: np.random.Generator) -> torch.Tensor:
    """Squared error of the velocity, mostly within the mask, with more noisy steps, because they decide the color."""
    ids = tokenizer(texts, padding="max_length", truncation=True, max_length=TOKENS, return_tensors="pt").input_ids
    timesteps = torch.from_numpy((1000 * rng.random(len(texts)) ** 0.7).astype(np.int64))
    kept = signal[timesteps][:, None, None, None]
    noise = torch.randn_like(target)
    noisy = kept.sqrt() * target + (1 - kept).sqrt() * noise
    velocity = kept.sqrt() * noise - (1 - kept).sqrt() * target
    sample = torch.cat([noisy, mask, hole], 1).to(memory_format=torch.channels_last)
    found = nets["unet"](sample, timesteps, nets["text"](ids).last_hidden_state).sample
    weight = WEIGHT_OUTSIDE + (1 - WEIGHT_OUTSIDE) * mask
    return ((found - velocity) ** 2 * weight).sum() / (4 * weight.sum())


@torch.no_grad()
def follow(average: dict, nets: torch.nn.Module, share: float) -> None:
    for name, value in nets.state_dict().items():
        if value.is_floating_point():
            average[name].lerp_(value, 1 - share)


# Shared by both trainings.


class Log:
    """Prints the mean loss every LOG_EVERY steps."""

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps, self.losses, self.started = name, steps, [], time.time()

    def __call__(self, step: int, loss: torch.Tensor) -> None:
        self.losses.append(loss.item())
        if (step + 1) % LOG_EVERY == 0:
            minutes = (time.time() - self.started) / 60
            mean = np.mean(self.losses)
            print(f"{self.name}: step {step + 1} of {self.steps}, loss {mean:.4f}, {minutes:.1f} min", flush=True)
            self.losses.clear()


def set_rate(optimizer: torch.optim.Optimizer, peak: float, step: int, steps: int, flat: float = 0) -> None:
    """Warms up over 200 steps, then falls to a hundredth along a cosine that starts after the share `flat` of the steps."""
    fallen = max(0, step / steps - flat) / (1 - flat)
    rate = peak * min(1, (step + 1) / 200) * (0.505 + 0.495 * math.cos(math.pi * fallen))
    for group in optimizer.param_groups:
        group["lr"] = rate


def descend(loss: torch.Tensor, parameters, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()


# The ONNX folder.


def write_demo(options: argparse.Namespace) -> None:
    tokenizer = write_tokenizer(vocabulary(), options.out / "tokenizer")
    (options.out / "vocabulary.txt").write_text("\n".join(vocabulary()) + "\n")
    vae = make_vae()
    vae.load_state_dict(torch.load(options.work / "vae-whitened.pt"))
    nets = torch.nn.ModuleDict({"text": make_text_encoder(tokenizer), "unet": make_unet()})
    nets.load_state_dict(torch.load(options.work / "unet.pt"))
    export(nets["text"], nets["unet"], vae, options.out)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"export: {size / 1e6:.1f} MB in {options.out}")


if __name__ == "__main__":
    main()
