"""Damages photos for the examples that repair something. The page says so."""

from PIL import Image, ImageFilter

from marks import mask_of

PALE = (244, 236, 220)


def old_print(photo: Image.Image, marks: list) -> Image.Image:
    """A tinted gray photo with pale scratches at the marks."""
    gray = photo.convert("L")
    tint = Image.merge("RGB", [gray.point(lambda v, a=a, b=b: a + v * b) for a, b in ((22, 0.9), (17, 0.87), (12, 0.8))])
    scratches = mask_of(photo.size, marks).filter(ImageFilter.GaussianBlur(0.6))
    return Image.composite(Image.new("RGB", photo.size, PALE), tint, scratches)


def soft(photo: Image.Image, _marks: list) -> Image.Image:
    """A photo that has lost half of its detail."""
    small = photo.resize((photo.width // 2, photo.height // 2), Image.Resampling.BOX)
    return small.resize(photo.size, Image.Resampling.BICUBIC)


PREPARATIONS = {"old print": old_print, "soft": soft}
