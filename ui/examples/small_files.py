"""Saves pictures for the page: as large as their box on the screen, in small files."""

import io
from pathlib import Path

from PIL import Image

MAX_BYTES = 40_000


def save_small(picture: Image.Image, path: Path, box: tuple[int, int], max_bytes: int = MAX_BYTES) -> tuple[int, int]:
    """Writes an AVIF within `box` and `max_bytes`, in the best quality that fits. Returns its size in pixels."""
    small = picture.copy()
    small.thumbnail(box, Image.Resampling.LANCZOS)
    for quality in range(72, 20, -4):
        file = io.BytesIO()
        small.save(file, "AVIF", quality=quality, speed=6)
        if file.tell() <= max_bytes:
            path.write_bytes(file.getvalue())
            return small.size
    raise ValueError(f"{path.name} exceeds {max_bytes} bytes at the lowest quality")
