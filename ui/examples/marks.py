"""The masks of the examples."""

from PIL import Image, ImageDraw

PINK = (245, 17, 123)


def mask_of(size: tuple[int, int], marks: list, widen: int = 0) -> Image.Image:
    """Draws the marks in white. `widen` adds pixels to the width of lines, like a wider brush."""
    mask = Image.new("L", size)
    draw = ImageDraw.Draw(mask)
    for kind, points, *width in marks:
        points = [tuple(point) for point in points]
        match kind:
            case "line":
                draw.line(points, fill=255, width=width[0] + widen, joint="curve")
            case "ellipse":
                draw.ellipse(points, fill=255)
            case "polygon":
                draw.polygon(points, fill=255)
    return mask


def overlay(photo: Image.Image, mask: Image.Image) -> Image.Image:
    """Draws the mask over the photo in the mask editor's color."""
    return Image.composite(Image.blend(photo, Image.new("RGB", photo.size, PINK), 0.6), photo, mask)
