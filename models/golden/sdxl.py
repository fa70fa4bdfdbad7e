#!/usr/bin/env python3
"""Writes models/tiny/sdxl-inpaint: SDXL inpainting with random weights, in the layout of an optimum export, the same nets in
half precision, and the vectors that diffusers' own pipeline records with torch. Our Rust code takes no part in it.

    pip install torch==2.15.0 diffusers==0.35.2 transformers==4.57.6 onnx==1.23.2 numpy==2.4.6 pillow==13.0.0
    models/golden/sdxl.py
"""

import hashlib
import json
import shutil
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import diffusers  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from diffusers.models.autoencoders import vae as vae_module  # noqa: E402
from diffusers.pipelines.stable_diffusion_xl import pipeline_stable_diffusion_xl_inpaint as pipeline_module  # noqa: E402
from diffusers.schedulers import scheduling_euler_ancestral_discrete as ancestral_module  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer  # noqa: E402

TINY = Path(__file__).resolve().parents[1] / "tiny"
MODEL = TINY / "sdxl-inpaint"
REFERENCE = MODEL / "reference"
# The nets in half precision, as `optimum-cli export onnx --dtype fp16` writes them.
HALF = MODEL / "half"
# Height and width differ, because SDXL's net takes both as inputs.
HEIGHT, WIDTH, PIXELS_PER_LATENT = 32, 48, 8
LENGTH = 77
PROMPT, NEGATIVE = "Replace the Cup with a red flower!", "blurry, low quality"
EULER = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1, timestep_spacing="leading")


def case(scheduler, steps, guidance=7.5, strength=1.0, negative=NEGATIVE, **config):
    return dict(scheduler=scheduler, steps=steps, guidance=guidance, strength=strength, negative=negative, config=config)


CASES = {
    "euler": case("EulerDiscrete", 5),
    "euler_strength06": case("EulerDiscrete", 8, strength=0.6),
    "dpm_karras_unguided": case("DPMSolverMultistep", 5, guidance=1.0, use_karras_sigmas=True),
    "ddim_no_negative_prompt": case("DDIM", 5, guidance=5.0, negative=None, clip_sample=False),
    "unipc": case("UniPCMultistep", 6, guidance=5.0),
    "euler_a": case("EulerAncestralDiscrete", 4),
}


def tokenizers():
    """Those of the tiny SD, with the older two files only. As in SDXL, the second pads with `!`."""
    for name, pad in (("tokenizer", "<|endoftext|>"), ("tokenizer_2", "!")):
        folder = MODEL / name
        folder.mkdir(parents=True)
        for file in ("vocab.json", "merges.txt"):
            shutil.copyfile(TINY / "sd-inpaint/tokenizer" / file, folder / file)
        for file in ("tokenizer_config.json", "special_tokens_map.json"):
            settings = json.loads((TINY / "sd-inpaint/tokenizer" / file).read_text())
            (folder / file).write_text(json.dumps(settings | {"pad_token": pad}, indent=1) + "\n")
    return [CLIPTokenizer.from_pretrained(MODEL / name) for name in ("tokenizer", "tokenizer_2")]


def text_config(tokenizer, size, layers, projection):
    return CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=size, intermediate_size=16, num_hidden_layers=layers,
        num_attention_heads=2, max_position_embeddings=LENGTH, projection_dim=projection,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )


def pipeline():
    torch.manual_seed(17)
    first, second = tokenizers()
    encoder = CLIPTextModel(text_config(first, 8, 2, 8)).eval()
    encoder_2 = CLIPTextModelWithProjection(text_config(second, 12, 3, 10)).eval()
    unet = diffusers.UNet2DConditionModel(
        sample_size=8, in_channels=9, out_channels=4, block_out_channels=(4, 8), layers_per_block=1, norm_num_groups=2,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=20, attention_head_dim=(2, 2), transformer_layers_per_block=(1, 1), use_linear_projection=True,
        addition_embed_type="text_time", addition_time_embed_dim=4, projection_class_embeddings_input_dim=6 * 4 + 10,
    ).eval()
    vae = diffusers.AutoencoderKL(
        block_out_channels=(4, 4, 4, 4), layers_per_block=1, norm_num_groups=2, latent_channels=4, sample_size=64,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, scaling_factor=0.13025,
    ).eval()
    with torch.no_grad():
        # Random nets are nearly constant; these factors make texts, sizes and pictures visible in the result.
        for name, weights in [*encoder.named_parameters(), *encoder_2.named_parameters()]:
            if "embedding" in name:
                weights.mul_(20)
        unet.conv_out.weight.mul_(6)
        unet.add_embedding.linear_2.weight.mul_(4)
        vae.encoder.conv_out.weight.mul_(4)
        vae.decoder.conv_out.weight.mul_(3)
    made = diffusers.StableDiffusionXLInpaintPipeline(
        vae=vae, text_encoder=encoder, text_encoder_2=encoder_2, tokenizer=first, tokenizer_2=second, unet=unet,
        scheduler=diffusers.EulerDiscreteScheduler(**EULER), add_watermarker=False,
    )
    made.set_progress_bar_config(disable=True)
    return made


class Exported(torch.nn.Module):
    """A net that calls a function, because torch exports modules only."""

    def __init__(self, net, run):
        super().__init__()
        self.net, self.run = net, run

    def forward(self, *inputs):
        return self.run(*inputs)


def export(folder, part, net, run, inputs, outputs, open_axes):
    file = folder / part / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    axes = {name: {axis: f"{name}{axis}" for axis in axes} for name, axes in open_axes.items()}
    torch.onnx.export(Exported(net, run).eval(), tuple(inputs.values()), file.as_posix(), input_names=list(inputs),
                      output_names=outputs, dynamic_axes=axes, opset_version=17, dynamo=False)
    shorten(file)
    if folder == MODEL:
        write_config(net, file.parent)


def write_config(net, folder):
    config = {key: value for key, value in dict(net.config.to_dict() if hasattr(net.config, "to_dict") else net.config).items()
              if not key.startswith("_")}
    (folder / "config.json").write_text(json.dumps(config, indent=1, default=str) + "\n")


def shorten(file):
    """Replaces the names that torch gives to nodes and tensors, which are longer than these nets' weights."""
    model = onnx.load(file)
    graph = model.graph
    kept = {port.name for port in [*graph.input, *graph.output]} | {""}
    names = {}

    def short(name):
        return name if name in kept else names.setdefault(name, f"t{len(names):x}")

    del graph.value_info[:]
    for tensor in graph.initializer:
        tensor.name = short(tensor.name)
    for node in graph.node:
        assert not any(attribute.HasField("g") for attribute in node.attribute), "a nested graph"
        node.name = ""
        node.input[:] = [short(name) for name in node.input]
        node.output[:] = [short(name) for name in node.output]
    onnx.checker.check_model(model)
    onnx.save(model, file)


def export_nets(pipe, folder, dtype):
    def randn(*shape):
        return torch.randn(*shape, dtype=dtype)

    ids = torch.ones(2, LENGTH, dtype=torch.int64)
    states = [f"hidden_states.{layer}" for layer in range(4)]

    def encode(net, pooled):
        def run(ids):
            made = net(input_ids=ids, output_hidden_states=True)
            return (made.text_embeds, made.last_hidden_state, *made.hidden_states) if pooled else (
                made.last_hidden_state, made.pooler_output, *made.hidden_states)
        return run

    first = ["last_hidden_state", "pooler_output", *states[:3]]
    second = ["text_embeds", "last_hidden_state", *states]
    batch = {0: "batch"}
    export(folder, "text_encoder", pipe.text_encoder, encode(pipe.text_encoder, False), {"input_ids": ids}, first,
           {name: batch for name in ["input_ids", *first]})
    export(folder, "text_encoder_2", pipe.text_encoder_2, encode(pipe.text_encoder_2, True), {"input_ids": ids}, second,
           {name: batch for name in ["input_ids", *second]})

    def predict(sample, timestep, states, text_embeds, time_ids):
        conditions = {"text_embeds": text_embeds, "time_ids": time_ids}
        return pipe.unet(sample, timestep, states, added_cond_kwargs=conditions, return_dict=False)[0]

    planes = (0, 2, 3)
    export(folder, "unet", pipe.unet, predict,
           {"sample": randn(2, 9, 4, 6), "timestep": torch.tensor(1), "encoder_hidden_states": randn(2, LENGTH, 20),
            "text_embeds": randn(2, 10), "time_ids": randn(2, 6)}, ["out_sample"],
           {"sample": planes, "encoder_hidden_states": (0,), "text_embeds": (0,), "time_ids": (0,), "out_sample": planes})
    vae = pipe.vae
    export(folder, "vae_encoder", vae, lambda sample: vae.quant_conv(vae.encoder(sample)),
           {"sample": randn(1, 3, HEIGHT, WIDTH)}, ["latent_parameters"], {"sample": planes, "latent_parameters": planes})
    export(folder, "vae_decoder", vae, lambda latents: vae.decoder(vae.post_quant_conv(latents)),
           {"latent_sample": randn(1, 4, 4, 6)}, ["sample"], {"latent_sample": planes, "sample": planes})


def write_settings(pipe):
    pipe.scheduler.save_config(MODEL / "scheduler")
    index = {"_class_name": "ORTStableDiffusionXLInpaintPipeline", "_diffusers_version": diffusers.__version__,
             "force_zeros_for_empty_prompt": True, "requires_aesthetics_score": False,
             "scheduler": ["diffusers", "EulerDiscreteScheduler"]}
    for part in ("text_encoder", "text_encoder_2", "unet", "vae_decoder", "vae_encoder"):
        index[part] = ["optimum.onnxruntime.modeling_diffusion", "ORTModel"]
    for part in ("tokenizer", "tokenizer_2"):
        index[part] = ["transformers", "CLIPTokenizer"]
    (MODEL / "model_index.json").write_text(json.dumps(dict(sorted(index.items())), indent=1) + "\n")


def picture_and_mask():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    picture = np.stack([x * 5, y * 8, (x + y) * 3], -1).astype(np.uint8)
    picture[10:24, 14:32] = [200, 40, 60]
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[8:25, 12:33] = 255
    return Image.fromarray(picture), Image.fromarray(mask)


def record(pipe):
    """Runs the whole pipeline with noise from files, and the mean of the autoencoder in place of a sample."""
    REFERENCE.mkdir()
    picture, mask = picture_and_mask()
    picture.save(REFERENCE / "image.png")
    mask.save(REFERENCE / "mask.png")
    shape = (1, 4, HEIGHT // PIXELS_PER_LATENT, WIDTH // PIXELS_PER_LATENT)
    random = np.random.default_rng(3)
    noise = random.standard_normal(shape).astype(np.float32)
    draws = random.standard_normal((4, *shape)).astype(np.float32)
    np.save(REFERENCE / "init_noise.npy", noise)
    np.save(REFERENCE / "step_noise.npy", draws)
    vae_module.DiagonalGaussianDistribution.sample = lambda posterior, generator=None: posterior.mode()
    pipeline_module.randn_tensor = lambda shape, **_: torch.from_numpy(noise.copy())
    used = []

    def draw(shape, **_):
        used.append(len(used))
        return torch.from_numpy(draws[used[-1]].copy())

    ancestral_module.randn_tensor = draw
    record_texts(pipe)
    base, cases = pipe.scheduler.config, {}
    for name, wanted in CASES.items():
        used.clear()
        pipe.scheduler = getattr(diffusers, wanted["scheduler"] + "Scheduler").from_config(base, **wanted["config"])
        latents = []

        def keep(_pipe, _index, _timestep, tensors):
            latents.append(tensors["latents"].numpy().copy())
            return tensors

        image = pipe(prompt=PROMPT, negative_prompt=wanted["negative"], image=picture, mask_image=mask, height=HEIGHT,
                     width=WIDTH, num_inference_steps=wanted["steps"], guidance_scale=wanted["guidance"],
                     strength=wanted["strength"], callback_on_step_end=keep, output_type="np").images[0]
        sigmas = getattr(pipe.scheduler, "sigmas", None)
        np.savez_compressed(
            REFERENCE / f"{name}.npz", latents=np.concatenate(latents), image=image.astype(np.float16),
            timesteps=pipe.scheduler.timesteps.numpy().astype(np.float64),
            sigmas=np.zeros(0) if sigmas is None else sigmas.numpy().astype(np.float64))
        cases[name] = {"class": type(pipe.scheduler).__name__, "steps": wanted["steps"], "guidance": wanted["guidance"],
                       "strength": wanted["strength"], "negative_prompt": wanted["negative"] or "",
                       "n_denoise": len(latents), "step_noises_used": len(used),
                       "config": {key: value for key, value in pipe.scheduler.config.items() if not key.startswith("_")}}
        print(f"{name:<26} {len(latents)} steps, latents up to {np.abs(latents).max():.2f}, "
              f"picture {image.mean():.2f} ± {image.std():.2f}")
    meta = {"prompt": PROMPT, "negative_prompt": NEGATIVE, "vae_scaling_factor": pipe.vae.config.scaling_factor, "cases": cases}
    (REFERENCE / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def record_texts(pipe):
    for file, tokenizer in (("input_ids.npy", pipe.tokenizer), ("input_ids_2.npy", pipe.tokenizer_2)):
        made = tokenizer([NEGATIVE, PROMPT], padding="max_length", max_length=LENGTH, truncation=True, return_tensors="np")
        np.save(REFERENCE / file, made.input_ids.astype(np.int64))
    prompt, negative, pooled, negative_pooled = pipe.encode_prompt(PROMPT, negative_prompt=NEGATIVE)
    np.save(REFERENCE / "prompt_embeds.npy", torch.cat([negative, prompt]).numpy())
    np.save(REFERENCE / "pooled_prompt_embeds.npy", torch.cat([negative_pooled, pooled]).numpy())


MANIFEST = """\
# Random weights: it paints noise. For tests. Written by models/golden/sdxl.py: change it there.
name = "sdxl-inpaint"
task = "sd-inpaint"
licence = "Apache-2.0"
commercial_use = true
attribution = "made for the tests of Retouch"
homepage = "https://onnx.ai"
demo = true
reference = "reference"

[canvas]
side = 48
multiple_of = 16
fit = "scale"

[sampling]
steps = 4
guidance = 5.0
negative_prompt = "blurry"

[strength]
edit = 1.0
add = 1.0
"""

README = f"""# `sdxl-inpaint`: SDXL inpainting, very small

Own work: two CLIP text encoders, a nine-channel UNet, and an autoencoder with **random weights** (seed 17), in the layout of an
optimum export. For tests only: it paints noise, so never serve it to people.

Written by `models/golden/sdxl.py` with torch {torch.__version__.split("+")[0]}, diffusers {diffusers.__version__}, and transformers 4.57.6, at opset 17.
Tensors have short names, because torch's are longer than the weights. The tokenizers are those of `../sd-inpaint`; as in SDXL, the
second pads with `!`.

`reference/` holds the output of diffusers' own pipeline with torch at {WIDTH} × {HEIGHT} pixels, in the format of
`../sd-inpaint/reference`, with two more files: `input_ids_2.npy`, the ids for the second encoder, and `pooled_prompt_embeds.npy`,
its pooled output for the negative and the positive prompt. A case whose `negative_prompt` is empty was recorded without one, which
diffusers replaces by zeros. Where diffusers would sample the autoencoder, its mean was used.

`half/` holds the same nets in half precision, to measure how far that moves the result from `reference/`.
"""


def write_manifest():
    files = sorted(path for path in MODEL.rglob("*") if path.is_file() and not {REFERENCE, HALF} & set(path.parents))
    entries = []
    for path in files:
        content = path.read_bytes()
        entries.append(f'\n[[extra]]\nfile = "{path.relative_to(MODEL).as_posix()}"\n'
                       f'sha256 = "{hashlib.sha256(content).hexdigest()}"\nsize_bytes = {len(content)}\n')
    (MODEL / "model.toml").write_text(MANIFEST + "".join(entries))
    (MODEL / "README.md").write_text(README)
    print(f"{sum(path.stat().st_size for path in files)} bytes in {len(files)} files")


def main():
    torch.set_num_threads(1)
    shutil.rmtree(MODEL, ignore_errors=True)
    with torch.no_grad():
        pipe = pipeline()
        export_nets(pipe, MODEL, torch.float32)
        write_settings(pipe)
        record(pipe)
        # Last, because it rounds the weights.
        export_nets(pipe.to(torch.float16), HALF, torch.float16)
    write_manifest()


if __name__ == "__main__":
    main()
