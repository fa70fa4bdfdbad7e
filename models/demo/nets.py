"""The four nets of the shapes demo, their tokenizer, and their export to an ONNX folder.

The same architecture as Stable Diffusion's inpainting, in miniature: CLIP text encoder, UNet with nine input channels,
autoencoder with factor 8 and four channels.
"""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import torch
from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
from diffusers.models.resnet import ResnetBlock2D
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

SIDE = 128
FACTOR = 8
TOKENS = 77
# Stable Diffusion's value. Our latents are scaled so that their standard deviation is its inverse.
SCALING = 0.18215
START, END = "<|startoftext|>", "<|endoftext|>"
OPSET = 17


def make_vae() -> AutoencoderKL:
    """No attention, and one group in every norm: more groups lose the level of a color, which matters most here."""
    vae = AutoencoderKL(
        block_out_channels=(16, 24, 32, 64),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1,
        norm_num_groups=1,
        mid_block_add_attention=False,
        sample_size=SIDE,
        scaling_factor=SCALING,
    )
    pass_colors_through(vae)
    return vae.to(memory_format=torch.channels_last)


@torch.no_grad()
def pass_colors_through(vae: AutoencoderKL) -> None:
    """Initializes an autoencoder whose first three latent channels are the mean color of 8 × 8 pixels.

    From random weights, training takes thousands of steps to distinguish colors. Channels 0 to 2 of every layer carry R, G and B,
    3 to 5 carry them negated, so that a SiLU loses nothing: silu(x) - silu(-x) = x.
    """
    encoder, decoder = vae.encoder, vae.decoder
    colors = torch.cat([torch.eye(3), -torch.eye(3)])
    both = torch.eye(6)
    keep(encoder.conv_in, colors)
    for down in encoder.down_blocks:
        for downsampler in down.downsamplers or ():
            keep(downsampler.conv, both, mean_of_four=True)
    keep(encoder.conv_out, torch.cat([torch.eye(3), -torch.eye(3)], 1))
    keep(vae.quant_conv, torch.eye(4))
    vae.quant_conv.weight[4:] = 0
    vae.quant_conv.bias[4:] = -6
    keep(vae.post_quant_conv, torch.eye(4))
    keep(decoder.conv_in, colors)
    for up in decoder.up_blocks:
        for upsampler in up.upsamplers or ():
            keep(upsampler.conv, both)
    keep(decoder.conv_out, torch.cat([torch.eye(3), -torch.eye(3)], 1))
    for module in vae.modules():
        if isinstance(module, ResnetBlock2D):
            module.conv2.weight *= 0.3
            module.conv2.weight[:6] = 0
            if module.conv_shortcut is not None:
                keep(module.conv_shortcut, both)


def keep(conv: torch.nn.Conv2d, matrix: torch.Tensor, mean_of_four: bool = False) -> None:
    """Makes the first output channels of a convolution its first input channels, times `matrix`."""
    rows, columns = matrix.shape
    middle = conv.kernel_size[0] // 2
    conv.bias[:rows] = 0
    conv.weight[:rows] = 0
    if mean_of_four:
        conv.weight[:rows, :columns, :2, :2] = matrix[..., None, None] / 4
    else:
        conv.weight[:rows, :columns, middle, middle] = matrix


def make_unet() -> UNet2DConditionModel:
    return UNet2DConditionModel(
        sample_size=SIDE // FACTOR,
        in_channels=9,
        out_channels=4,
        block_out_channels=(64, 96),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=64,
        attention_head_dim=4,
        norm_num_groups=4,
    ).to(memory_format=torch.channels_last)


def make_text_encoder(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    end = tokenizer.convert_tokens_to_ids(END)
    config = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=TOKENS,
        projection_dim=64,
        bos_token_id=tokenizer.convert_tokens_to_ids(START),
        eos_token_id=end,
        pad_token_id=end,
    )
    return CLIPTextModel(config)


def make_scheduler() -> DDIMScheduler:
    return DDIMScheduler(
        num_train_timesteps=1000,
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        prediction_type="v_prediction",
        timestep_spacing="trailing",
        steps_offset=1,
        set_alpha_to_one=False,
        clip_sample=False,
    )


# The tokenizer: CLIP's byte-level BPE, with merges that turn every word of the vocabulary into one token.


def byte_letters() -> dict[int, str]:
    """Returns GPT-2's printable letter for every byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def learn_merges(words: list[str]) -> list[tuple[str, str]]:
    """Learns byte-pair encoding: the most common pair becomes one symbol, until every word is one."""
    splits = [[*word[:-1], word[-1] + "</w>"] for word in words]
    merges = []
    while pairs := Counter(pair for split in splits for pair in zip(split, split[1:])):
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        splits = [merged(split, best) for split in splits]
    return merges


def merged(split: list[str], pair: tuple[str, str]) -> list[str]:
    result, i = [], 0
    while i < len(split):
        is_pair = tuple(split[i : i + 2]) == pair
        result.append("".join(pair) if is_pair else split[i])
        i += 2 if is_pair else 1
    return result


def write_tokenizer(words: list[str], folder: Path) -> CLIPTokenizer:
    folder.mkdir(parents=True, exist_ok=True)
    letters = list(byte_letters().values())
    merges = learn_merges(words)
    symbols = [*letters, *(letter + "</w>" for letter in letters), *("".join(pair) for pair in merges), START, END]
    vocabulary = {symbol: i for i, symbol in enumerate(dict.fromkeys(symbols))}
    special = {"bos_token": START, "eos_token": END, "unk_token": END, "pad_token": END}
    config = special | {
        "model_max_length": TOKENS,
        "add_prefix_space": False,
        "do_lower_case": True,
        "tokenizer_class": "CLIPTokenizer",
    }
    write_json(folder / "vocab.json", vocabulary)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    write_json(folder / "special_tokens_map.json", special)
    write_json(folder / "tokenizer_config.json", config)
    tokenizer = CLIPTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer.save_pretrained(scratch)
        shutil.copy(Path(scratch) / "tokenizer.json", folder / "tokenizer.json")
    return tokenizer


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, default=str, ensure_ascii=False) + "\n")


# Export. Names and axes are those of optimum's exporter.


class TextEncoder(torch.nn.Module):
    def __init__(self, model: CLIPTextModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        output = self.model(input_ids=input_ids)
        return output.last_hidden_state, output.pooler_output


class UNet(torch.nn.Module):
    def __init__(self, model: UNet2DConditionModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, sample, timestep, encoder_hidden_states):
        return self.model(sample, timestep, encoder_hidden_states, return_dict=False)[0]


class Encoder(torch.nn.Module):
    def __init__(self, vae: AutoencoderKL) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, sample):
        return self.vae.quant_conv(self.vae.encoder(sample))


class Decoder(torch.nn.Module):
    def __init__(self, vae: AutoencoderKL) -> None:
        super().__init__()
        self.vae = vae

    def forward(self, latent_sample):
        return self.vae.decoder(self.vae.post_quant_conv(latent_sample))


def export(text_encoder: CLIPTextModel, unet: UNet2DConditionModel, vae: AutoencoderKL, folder: Path) -> None:
    """Writes everything except the tokenizer."""
    plain = [net.to(memory_format=torch.contiguous_format).eval() for net in (unet, vae)]
    image = {0: "batch", 2: "height", 3: "width"}
    latents = {0: "batch", 2: "latent_height", 3: "latent_width"}
    text = {0: "batch", 1: "sequence"}
    small = SIDE // FACTOR
    to_onnx(
        TextEncoder(text_encoder.eval()),
        {"input_ids": (torch.ones(2, TOKENS, dtype=torch.int64), text)},
        {"last_hidden_state": text, "pooler_output": {0: "batch"}},
        folder / "text_encoder",
    )
    to_onnx(
        UNet(plain[0]),
        {
            "sample": (torch.randn(2, 9, small, small), image),
            "timestep": (torch.tensor(1, dtype=torch.int64), {}),
            "encoder_hidden_states": (torch.randn(2, TOKENS, unet.config.cross_attention_dim), text),
        },
        {"out_sample": image},
        folder / "unet",
    )
    to_onnx(
        Encoder(plain[1]),
        {"sample": (torch.randn(1, 3, SIDE, SIDE), image)},
        {"latent_parameters": latents},
        folder / "vae_encoder",
    )
    to_onnx(
        Decoder(plain[1]),
        {"latent_sample": (torch.randn(1, 4, small, small), latents)},
        {"sample": image},
        folder / "vae_decoder",
    )
    for name, net in (("text_encoder", text_encoder), ("unet", unet), ("vae_encoder", vae), ("vae_decoder", vae)):
        config = net.config.to_dict() if name == "text_encoder" else dict(net.config)
        hidden = ("_name_or_path", "_use_default_values")
        write_json(folder / name / "config.json", {key: config[key] for key in config if key not in hidden})
    make_scheduler().save_config(folder / "scheduler")
    write_json(folder / "model_index.json", model_index())


def to_onnx(net: torch.nn.Module, inputs: dict, outputs: dict, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        torch.onnx.export(
            net,
            tuple(example for example, _ in inputs.values()),
            folder / "model.onnx",
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: axes for name, (_, axes) in inputs.items()} | outputs,
            opset_version=OPSET,
            dynamo=False,
            do_constant_folding=True,
        )


def model_index() -> dict:
    ort = "optimum.onnxruntime.modeling_diffusion"
    return {
        "_class_name": "ORTStableDiffusionInpaintPipeline",
        "_diffusers_version": "0.42.1",
        "feature_extractor": [None, None],
        "safety_checker": [None, None],
        "scheduler": ["diffusers", "DDIMScheduler"],
        "text_encoder": [ort, "ORTTextEncoder"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": [ort, "ORTUnet"],
        "vae_decoder": [ort, "ORTVaeDecoder"],
        "vae_encoder": [ort, "ORTVaeEncoder"],
    }
