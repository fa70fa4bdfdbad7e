"""What somebody would have painted over."""

from PIL import Image, ImageDraw

PINK = (245, 17, 123)


def mask_of(size: tuple[int, int], marks: list, wider: int = 0) -> Image.Image:
    """White where it is marked. Lines may be drawn wider than they are, as a brush is."""
    mask = Image.new("L", size)
    draw = ImageDraw.Draw(mask)
    for kind, points, *width in marks:
        points = [tuple(point) for point in points]
        match kind:
            case "line":
                draw.line(points, fill=255, width=width[0] + wider, joint="curve")
            case "ellipse":
                draw.ellipse(points, fill=255)
            case "polygon":
                draw.polygon(points, fill=255)
    return mask


def painted(photo: Image.Image, mask: Image.Image) -> Image.Image:
    """The photo with the mask on it, in the mask editor's colour."""
    return Image.composite(Image.blend(photo, Image.new("RGB", photo.size, PINK), 0.6), photo, mask)
