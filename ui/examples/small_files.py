"""Pictures as the page wants them: as large as their box on a screen, and small to fetch."""

import io
from pathlib import Path

from PIL import Image

MOST_BYTES = 40_000


def save_small(picture: Image.Image, path: Path, box: tuple[int, int], most_bytes: int = MOST_BYTES) -> tuple[int, int]:
    """Writes an AVIF no larger than `box` and `most_bytes`, in the best quality that fits; gives its size."""
    small = picture.copy()
    small.thumbnail(box, Image.Resampling.LANCZOS)
    for quality in range(72, 20, -4):
        file = io.BytesIO()
        small.save(file, "AVIF", quality=quality, speed=6)
        if file.tell() <= most_bytes:
            path.write_bytes(file.getvalue())
            return small.size
    raise ValueError(f"{path.name} does not get small enough")
