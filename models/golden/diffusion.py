#!/usr/bin/env python3
"""Writes reference vectors for inpainting by diffusion: diffusers' own schedulers drive the tiny nets of
models/tiny/sd-inpaint through onnxruntime, and every step is recorded. Our Rust code takes no part in it.

With --check it first repeats the cases of models/tiny/sd-inpaint/reference, which diffusers' whole pipeline made with torch's
nets, and prints the differences: if they are small, the new vectors are as right as the old ones.

    pip install torch==2.15.0 diffusers==0.42.1 numpy==2.4.6 pillow==13.0.0 onnxruntime==1.31.1
    models/golden/diffusion.py [--check] [OUT]      OUT is models/tiny/sd-inpaint/reference-more by default
"""

import importlib
import inspect
import json
import shutil
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import diffusers  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

MODEL = Path(__file__).resolve().parents[1] / "tiny/sd-inpaint"
REFERENCE = MODEL / "reference"
SHARED = ("image.png", "mask.png", "init_noise.npy", "step_noise.npy")
SCALING_FACTOR = 0.18215

# The settings of Stable Diffusion's training, from its scheduler_config.json.
SD = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", num_train_timesteps=1000)
# Shared by all cases of DDIM, whose default would clip.
DDIM = dict(SD, clip_sample=False, set_alpha_to_one=False, steps_offset=1)
LCM = dict(SD, set_alpha_to_one=False, steps_offset=1, original_inference_steps=50)
V = dict(prediction_type="v_prediction")
ZERO_SNR = dict(V, rescale_betas_zero_snr=True, timestep_spacing="trailing")
LEADING = dict(timestep_spacing="leading", steps_offset=1)
TRAILING = dict(timestep_spacing="trailing")
LINSPACE = dict(timestep_spacing="linspace")
KARRAS = dict(use_karras_sigmas=True)


def case(name, scheduler, steps, config, guidance=7.5, strength=1.0, eta=None):
    return name, dict(scheduler=scheduler, steps=steps, config=config, guidance=guidance, strength=strength, eta=eta)


CASES = [
    case("ddim_strength03", "DDIM", 10, dict(DDIM), strength=0.3),
    case("ddim_strength099", "DDIM", 7, dict(DDIM, **TRAILING), strength=0.99),
    case("ddim_linspace13_to_one", "DDIM", 13, dict(DDIM, **LINSPACE, set_alpha_to_one=True)),
    case("ddim_eta05", "DDIM", 6, dict(DDIM), eta=0.5),
    case("ddim_eta1_trailing_strength06", "DDIM", 10, dict(DDIM, **TRAILING), guidance=1.0, strength=0.6, eta=1.0),
    case("ddim_sample_linear", "DDIM", 6, dict(DDIM, beta_start=0.0001, beta_end=0.02, beta_schedule="linear",
                                               prediction_type="sample")),
    case("ddim_cosine_v", "DDIM", 7, dict(DDIM, **V, beta_schedule="squaredcos_cap_v2")),
    case("ddim_zero_snr_strength075", "DDIM", 8, dict(DDIM, **ZERO_SNR), strength=0.75),
    case("dpm_trailing7", "DPMSolverMultistep", 7, dict(SD, **TRAILING)),
    case("dpm_linspace13_strength06", "DPMSolverMultistep", 13, dict(SD, **LINSPACE), strength=0.6),
    case("dpm_karras13", "DPMSolverMultistep", 13, dict(SD, **LEADING, **KARRAS)),
    case("dpm_karras_v_strength03", "DPMSolverMultistep", 10, dict(SD, **V, **KARRAS), strength=0.3),
    case("dpm_zero_snr", "DPMSolverMultistep", 8, dict(SD, **ZERO_SNR)),
    case("dpm_order1", "DPMSolverMultistep", 7, dict(SD, **LEADING, solver_order=1)),
    case("dpm_heun", "DPMSolverMultistep", 8, dict(SD, **LEADING, solver_type="heun")),
    case("dpm_sigma_min", "DPMSolverMultistep", 16, dict(SD, **LINSPACE, final_sigmas_type="sigma_min")),
    case("dpm_sigma_min_higher", "DPMSolverMultistep", 7, dict(SD, **TRAILING, final_sigmas_type="sigma_min",
                                                                lower_order_final=False)),
    case("dpm_karras_sigma_min", "DPMSolverMultistep", 16, dict(SD, **KARRAS, final_sigmas_type="sigma_min")),
    case("dpm_euler_at_final", "DPMSolverMultistep", 16, dict(SD, **LINSPACE, final_sigmas_type="sigma_min",
                                                              euler_at_final=True), guidance=1.0),
    case("dpm_cosine_clipped", "DPMSolverMultistep", 9, dict(SD, **V, beta_schedule="squaredcos_cap_v2",
                                                             lambda_min_clipped=-5.1)),
    case("dpm_cosine_karras", "DPMSolverMultistep", 6, dict(SD, **V, **KARRAS, beta_schedule="squaredcos_cap_v2")),
    case("dpm_sample_linear", "DPMSolverMultistep", 6, dict(SD, **LEADING, beta_start=0.0001, beta_end=0.02,
                                                            beta_schedule="linear", prediction_type="sample")),
    case("dpm_trained_betas", "DPMSolverMultistep", 5, dict(SD, num_train_timesteps=20, trained_betas=[
        round(0.01 * (index + 1), 2) for index in range(20)])),
    case("euler_linspace7", "EulerDiscrete", 7, dict(SD, **LINSPACE)),
    case("euler_leading_v_strength075", "EulerDiscrete", 8, dict(SD, **LEADING, **V), strength=0.75),
    case("euler_karras", "EulerDiscrete", 8, dict(SD, **LEADING, **KARRAS)),
    case("euler_karras_ends", "EulerDiscrete", 6, dict(SD, **TRAILING, **KARRAS, sigma_min=0.1, sigma_max=12.0)),
    case("euler_zero_snr", "EulerDiscrete", 6, dict(SD, **ZERO_SNR)),
    case("euler_sample_sigma_min", "EulerDiscrete", 7, dict(SD, **LEADING, prediction_type="sample",
                                                            final_sigmas_type="sigma_min"), guidance=1.0),
    case("euler_a_linspace_strength03", "EulerAncestralDiscrete", 10, dict(SD, **LINSPACE), strength=0.3),
    case("euler_a_trailing_v", "EulerAncestralDiscrete", 7, dict(SD, **TRAILING, **V)),
    case("euler_a_zero_snr", "EulerAncestralDiscrete", 6, dict(SD, **ZERO_SNR), guidance=1.0),
    case("lcm8_strength05", "LCM", 8, dict(LCM), guidance=1.0, strength=0.5),
    case("lcm7_v_to_one", "LCM", 7, dict(LCM, **V, set_alpha_to_one=True), guidance=2.0),
    case("lcm3_scaling_sample", "LCM", 3, dict(LCM, timestep_scaling=4.0, original_inference_steps=40,
                                               prediction_type="sample")),
    case("lcm5_zero_snr", "LCM", 5, dict(LCM, **ZERO_SNR), guidance=1.0),
    case("tcd7_eta0", "TCD", 7, dict(LCM), guidance=1.0),
    case("tcd6_eta07_strength06", "TCD", 6, dict(LCM), guidance=1.5, strength=0.6, eta=0.7),
    case("tcd5_eta1_v", "TCD", 5, dict(LCM, **V, set_alpha_to_one=True), eta=1.0),
    case("unipc_leading8", "UniPCMultistep", 8, dict(SD, **LEADING)),
    case("unipc_linspace13_strength06", "UniPCMultistep", 13, dict(SD, **LINSPACE), strength=0.6),
    case("unipc_karras", "UniPCMultistep", 8, dict(SD, **LEADING, **KARRAS)),
    case("unipc_zero_snr", "UniPCMultistep", 8, dict(SD, **ZERO_SNR)),
    case("unipc_order3", "UniPCMultistep", 9, dict(SD, **LEADING, solver_order=3)),
    case("unipc_order1_sample", "UniPCMultistep", 6, dict(SD, **LEADING, solver_order=1, prediction_type="sample"), guidance=1.0),
    # With bh1, diffusers computes infinity times zero in a last step to zero noise.
    case("unipc_bh1", "UniPCMultistep", 7, dict(SD, **LEADING, solver_type="bh1", final_sigmas_type="sigma_min")),
    case("unipc_sigma_min_higher", "UniPCMultistep", 7, dict(SD, **TRAILING, final_sigmas_type="sigma_min",
                                                             lower_order_final=False)),
]

# Scheduler files as published models have them, to be replaced by every class.
SHIPPED = {
    "sd15": dict(_class_name="PNDMScheduler", _diffusers_version="0.6.0", beta_end=0.012, beta_schedule="scaled_linear",
                 beta_start=0.00085, num_train_timesteps=1000, set_alpha_to_one=False, skip_prk_steps=True, steps_offset=1,
                 trained_betas=None, clip_sample=False),
    "sd21": dict(_class_name="DDIMScheduler", _diffusers_version="0.8.0", beta_end=0.012, beta_schedule="scaled_linear",
                 beta_start=0.00085, clip_sample=False, num_train_timesteps=1000, prediction_type="v_prediction",
                 set_alpha_to_one=False, skip_prk_steps=True, steps_offset=1, trained_betas=None),
    "sdxl": dict(_class_name="EulerDiscreteScheduler", _diffusers_version="0.19.0.dev0", beta_end=0.012,
                 beta_schedule="scaled_linear", beta_start=0.00085, clip_sample=False, interpolation_type="linear",
                 num_train_timesteps=1000, prediction_type="epsilon", sample_max_value=1.0, set_alpha_to_one=False,
                 skip_prk_steps=True, steps_offset=1, timestep_spacing="leading", trained_betas=None, use_karras_sigmas=False),
    # Saved by diffusers, which lists the fields that are only the defaults of their class.
    "dpm_karras": dict(SD, _class_name="DPMSolverMultistepScheduler", clip_sample=False, **KARRAS, **TRAILING, solver_order=2,
                       algorithm_type="dpmsolver++", euler_at_final=True, lambda_min_clipped=-5.1, variance_type=None,
                       rescale_betas_zero_snr=True, prediction_type="v_prediction", final_sigmas_type="zero",
                       _use_default_values=["final_sigmas_type", "timestep_spacing"]),
    "heun": dict(SD, _class_name="HeunDiscreteScheduler", clip_sample=False, clip_sample_range=1.0, **LEADING, **KARRAS),
}


class Nets:
    """The tiny nets in onnxruntime, as diffusers' inpainting pipeline calls them."""

    def __init__(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self.sessions = {
            part: onnxruntime.InferenceSession(MODEL / part / "model.onnx", options, providers=["CPUExecutionProvider"])
            for part in ("text_encoder", "unet", "vae_encoder", "vae_decoder")
        }
        image = np.asarray(Image.open(REFERENCE / "image.png").convert("RGB"), np.float32)
        mask = np.asarray(Image.open(REFERENCE / "mask.png").convert("L"), np.float32)
        self.image = (image / 255 * 2 - 1).transpose(2, 0, 1)[None]
        mask = (mask / 255 >= 0.5).astype(np.float32)[None, None]
        fixed = [mask[:, :, ::8, ::8], self.encode(self.image * (mask < 0.5))]
        self.fixed = np.concatenate(fixed, 1)
        self.texts = self.run("text_encoder", input_ids=np.load(REFERENCE / "input_ids.npy"))

    def run(self, part, **inputs):
        return self.sessions[part].run(None, inputs)[0]

    def encode(self, pixels):
        # The mean of the posterior, not a sample of it.
        return (self.run("vae_encoder", sample=pixels)[:, :4] * SCALING_FACTOR).astype(np.float32)

    def decode(self, latents):
        image = self.run("vae_decoder", latent_sample=latents / np.float32(SCALING_FACTOR))
        return np.clip(image / 2 + 0.5, 0, 1)[0].transpose(1, 2, 0)

    def predict(self, latents, timestep, guidance):
        texts = self.texts if guidance > 1 else self.texts[1:]
        seen = np.concatenate([latents, self.fixed], 1).repeat(len(texts), 0)
        # The net takes whole timesteps; fractions are cut off, as in optimum.
        made = self.run("unet", sample=seen, timestep=np.array(int(timestep)), encoder_hidden_states=texts)
        return made[:1] + np.float32(guidance) * (made[1:] - made[:1]) if guidance > 1 else made


def record(nets, scheduler, steps, guidance, strength, eta):
    """Runs StableDiffusionInpaintPipeline.__call__ of diffusers 0.42.1 with noise from files."""
    noise = torch.from_numpy(np.load(REFERENCE / "init_noise.npy"))
    draws = iter(torch.from_numpy(np.load(REFERENCE / "step_noise.npy")))
    used = []

    def randn_tensor(shape, **_):
        used.append(next(draws))
        assert tuple(shape) == tuple(used[-1].shape)
        return used[-1]

    module = importlib.import_module(type(scheduler).__module__)
    if hasattr(module, "randn_tensor"):
        module.randn_tensor = randn_tensor
    scheduler.set_timesteps(steps)
    first = max(steps - min(int(steps * strength), steps), 0)
    timesteps = scheduler.timesteps[first:]
    if hasattr(scheduler, "set_begin_index"):
        scheduler.set_begin_index(first)
    if strength == 1.0:
        latents = noise * scheduler.init_noise_sigma
    else:
        latents = scheduler.add_noise(torch.from_numpy(nets.encode(nets.image)), noise, timesteps[:1])
    accepts_eta = "eta" in inspect.signature(scheduler.step).parameters
    extra = {"eta": eta or 0.0} if accepts_eta else {}
    recorded = []
    for timestep in timesteps:
        seen = scheduler.scale_model_input(latents, timestep)
        predicted = torch.from_numpy(nets.predict(seen.numpy().astype(np.float32), timestep, guidance))
        latents = scheduler.step(predicted, timestep, latents, **extra, return_dict=False)[0].float()
        recorded.append(latents.numpy().copy())
    sigmas = getattr(scheduler, "sigmas", None)
    return dict(
        latents=np.concatenate(recorded),
        image=nets.decode(recorded[-1]).astype(np.float32),
        timesteps=scheduler.timesteps.numpy().astype(np.float64),
        sigmas=np.zeros(0) if sigmas is None else sigmas.numpy().astype(np.float64),
    ), len(used)


def replaced():
    """Returns what diffusers makes of each shipped file for another class."""
    made = []
    for shipped in SHIPPED.values():
        for scheduler in dict.fromkeys(wanted["scheduler"] for _, wanted in CASES):
            new = getattr(diffusers, scheduler + "Scheduler").from_config(shipped)
            known = inspect.signature(type(new).__init__).parameters
            config = {key: value for key, value in new.config.items() if key in known}
            made.append({"shipped": shipped, "class": type(new).__name__, "config": config})
    return made


def make(scheduler, config):
    return getattr(diffusers, scheduler)(**config)


def check(nets):
    """Repeats the recorded cases."""
    worst = 0.0
    for name, recorded in json.loads((REFERENCE / "meta.json").read_text())["cases"].items():
        known = inspect.signature(getattr(diffusers, recorded["class"]).__init__).parameters
        # A scheduler made from another one's settings keeps fields that it does not know.
        config = {field: value for field, value in recorded["config"].items() if field in known}
        if config.get("lambda_min_clipped", 0) is None:
            del config["lambda_min_clipped"]
        scheduler = make(recorded["class"], config)
        run = [recorded[field] for field in ("steps", "guidance", "strength")]
        made, draws = record(nets, scheduler, *run, recorded.get("eta"))
        truth = np.load(REFERENCE / f"{name}.npz")
        pairs = zip(made["latents"], truth["latents"], strict=True)
        off = max(np.abs(made - true).max() / np.abs(true).max() for made, true in pairs)
        pixels = np.abs(np.round(made["image"] * 255) - np.round(truth["image"] * 255)).max()
        equal = np.array_equal(made["timesteps"], truth["timesteps"]) and draws == recorded["step_noises_used"]
        verdict = "same" if equal else "OTHER"
        print(f"{name:<28} latents {off:.1e}, image {pixels:.0f}/255, {verdict} timesteps and draws")
        worst = max(worst, off)
        if not equal or off > 1e-4 or pixels > 2:
            sys.exit(f"{name} differs from the result of diffusers' pipeline")
    print(f"worst {worst:.1e}")


def write(nets, out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in SHARED:
        shutil.copyfile(REFERENCE / name, out / name)
    meta = {key: value for key, value in json.loads((REFERENCE / "meta.json").read_text()).items() if key != "cases"}
    meta["cases"] = {}
    for name, wanted in CASES:
        scheduler = make(wanted["scheduler"] + "Scheduler", wanted["config"])
        run = [wanted[field] for field in ("steps", "guidance", "strength", "eta")]
        made, draws = record(nets, scheduler, *run)
        assert np.isfinite(made["latents"]).all(), name
        np.savez_compressed(out / f"{name}.npz", **made)
        config = {key: value for key, value in scheduler.config.items() if not key.startswith("_")}
        recorded = {"class": type(scheduler).__name__, "steps": wanted["steps"], "guidance": wanted["guidance"],
                    "strength": wanted["strength"], "n_denoise": len(made["latents"]), "step_noises_used": draws,
                    "config": config}
        if wanted["eta"] is not None:
            recorded["eta"] = wanted["eta"]
        meta["cases"][name] = recorded
        print(f"{name:<32} {len(made['latents'])} steps, latents up to {np.abs(made['latents']).max():.3g}")
    (out / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    (out / "replaced.json").write_text("[\n" + ",\n".join(map(json.dumps, replaced())) + "\n]\n")
    (out / "README.md").write_text(README)


README = """# More reference vectors for `sd-inpaint`

Written by `models/golden/diffusion.py`: the schedulers of diffusers 0.42.1 drive the nets beside this folder through
onnxruntime 1.31.1, in the format of `../reference`. `replaced.json` holds the settings that diffusers' `from_config` makes of
published scheduler files for other classes. Own work.
"""


def main():
    arguments = sys.argv[1:]
    nets = Nets()
    if "--check" in arguments:
        arguments.remove("--check")
        check(nets)
    write(nets, Path(arguments[0]) if arguments else MODEL / "reference-more")


if __name__ == "__main__":
    main()
