"""Makes a Stable Diffusion inpainting pipeline with small random weights, in the layout of diffusers.

Runs in the virtual environment of `scripts/models export`: tiny_pipeline.py TOKENIZER OUT
"""

import sys

import torch
from diffusers import AutoencoderKL, PNDMScheduler, StableDiffusionInpaintPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

WIDTH = 32


def main(tokenizer, out):
    torch.manual_seed(11)
    words = CLIPTokenizer.from_pretrained(tokenizer)
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(words),
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=77,
            bos_token_id=words.bos_token_id,
            eos_token_id=words.eos_token_id,
        )
    )
    unet = UNet2DConditionModel(
        sample_size=8,
        in_channels=9,
        out_channels=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        block_out_channels=(WIDTH, 2 * WIDTH),
        layers_per_block=1,
        cross_attention_dim=WIDTH,
        attention_head_dim=8,
    )
    autoencoder = AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(WIDTH,) * 4,
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=8,
        sample_size=64,
    )
    scheduler = PNDMScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", skip_prk_steps=True, set_alpha_to_one=False, steps_offset=1
    )
    pipeline = StableDiffusionInpaintPipeline(
        vae=autoencoder,
        text_encoder=text,
        tokenizer=words,
        unet=unet,
        scheduler=scheduler,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.to(dtype=torch.float16).save_pretrained(out, variant="fp16", safe_serialization=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
