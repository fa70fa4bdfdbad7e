"""Makes the HEIC and AVIF files beside this script, from a synthetic picture. Needs Debian's libheif-examples, and the
Python packages Pillow, numpy, and imagecodecs.

    python3 make.py

heif-enc writes single pictures; it knows neither grids nor rotations. Those are put together here, of the coded data that
it writes, the way phones do (ISO/IEC 23008-12): tiles of one size that share a configuration, a rotation and Exif that
agrees with it, a thumbnail, a depth map, a profile.
"""

import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import imagecodecs
import numpy
from PIL import Image, ImageCms

HERE = Path(__file__).parent
TILE = 64


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        odd = quarters(65, 43)
        encode(folder, odd, "single.heic")
        encode(folder, odd, "single.avif", "-A")
        clear = odd.convert("RGBA")
        clear.paste((0, 0, 255, 0), (0, 22, 32, 43))
        encode(folder, clear, "alpha.heic")
        encode(folder, clear, "alpha.avif", "-A")
        deep = folder / "deep.png"
        write_deep(odd, deep)
        encode(folder, deep, "ten-bit.heic", "-b", "10")
        encode_deep_avif(odd, "ten-bit.avif", 1, 13)
        encode_deep_avif(odd, "pq.avif", 9, 16)
        encode_deep_avif(odd, "p3.avif", 12, 13)
        phone(folder)
        mirrored(folder)


def quarters(width, height):
    """Red, green, blue, and white, clockwise from the top left, so that every turn and flip is visible."""
    picture = Image.new("RGB", (width, height), (220, 40, 40))
    picture.paste((40, 180, 40), (width // 2, 0, width, height // 2))
    picture.paste((40, 40, 220), (width // 2, height // 2, width, height))
    picture.paste((235, 235, 235), (0, height // 2, width // 2, height))
    return picture


def encode(folder, picture, name, *options):
    source = picture
    if isinstance(picture, Image.Image):
        source = folder / "source.png"
        picture.save(source)
    quality = ["-q", "80", "-p", "preset=slow"] if "-A" not in options else ["-q", "70"]
    subprocess.run(["heif-enc", *quality, *options, "-o", HERE / name, source], check=True, stdout=subprocess.DEVNULL)


def encode_deep_avif(picture, name, primaries, transfer):
    """Writes 10 bits a channel, which the encoder behind heif-enc refuses, with numbers of ITU-T H.273, which it forgets."""
    samples = numpy.asarray(picture).astype(numpy.uint16) * 4
    options = {"level": 70, "bitspersample": 10, "primaries": primaries, "transfer": transfer, "matrix": 1}
    (HERE / name).write_bytes(imagecodecs.avif_encode(samples, **options))


def write_deep(picture, path):
    """Writes a PNG of 16 bits a channel, which Pillow does not."""
    import zlib

    width, height = picture.size
    rows = b""
    for y in range(height):
        rows += b"\0" + b"".join(struct.pack(">3H", *(value * 257 for value in picture.getpixel((x, y)))) for x in range(width))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# ---- Files as phones write them -------------------------------------------------------------------------------------


def box(kind, *parts):
    data = b"".join(parts)
    return struct.pack(">I", len(data) + 8) + kind + data


def full(kind, version, flags, *parts):
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def coded(folder, picture):
    """Returns the configuration and the coded data of a picture."""
    source, target = folder / "tile.png", folder / "tile.heic"
    picture.save(source)
    command = ["heif-enc", "-q", "80", "-p", "preset=slow", "-o", target, source]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    file = target.read_bytes()
    configuration = file.index(b"hvcC") - 4
    length = struct.unpack(">I", file[configuration : configuration + 4])[0]
    data = file.index(b"mdat") + 4
    return file[configuration : configuration + length], file[data:]


def write(name, items, references, properties, associations, hidden=()):
    """Writes a file. `items`: id, type, contents. `references`: type, from, to. `associations`: id, numbers from 1."""
    entries = b"".join(full(b"infe", 2, number in hidden, struct.pack(">HH", number, 0), kind, b"\0") for number, kind, _ in items)
    located = lambda start: full(
        b"iloc", 0, 0, b"\x44\0", struct.pack(">H", len(items)), b"".join(places(items, start))
    )
    linked = b"".join(
        box(kind, struct.pack(">HH", source, len(targets)), b"".join(struct.pack(">H", one) for one in targets))
        for kind, source, targets in references
    )
    belonging = b"".join(struct.pack(">HB", number, len(which)) + bytes(which) for number, which in associations)
    brands = box(b"ftyp", b"heic", struct.pack(">I", 0), b"mif1heic")

    def meta(start):
        return full(
            b"meta", 0, 0,
            full(b"hdlr", 0, 0, struct.pack(">I", 0), b"pict", bytes(12), b"\0"),
            full(b"pitm", 0, 0, struct.pack(">H", items[0][0])),
            located(start),
            full(b"iinf", 0, 0, struct.pack(">H", len(items)), entries),
            full(b"iref", 0, 0, linked),
            box(b"iprp", box(b"ipco", *properties), full(b"ipma", 0, 0, struct.pack(">I", len(associations)), belonging)),
        )

    start = len(brands) + len(meta(0)) + 8
    (HERE / name).write_bytes(brands + meta(start) + box(b"mdat", *(contents for _, _, contents in items)))


def places(items, at):
    for number, _, contents in items:
        yield struct.pack(">HHHII", number, 0, 1, at, len(contents))
        at += len(contents)


def size(width, height):
    return full(b"ispe", 0, 0, struct.pack(">II", width, height))


def exif(orientation):
    """Exif with an orientation and a place, which a reader must ignore and drop."""
    latitude = struct.pack("<HHI4s", 1, 2, 2, b"N\0\0\0")
    entries = struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0) + struct.pack("<HHII", 0x8825, 4, 1, 38)
    tiff = b"II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4) + struct.pack("<H", 1) + latitude + bytes(4)
    return struct.pack(">I", 6) + b"Exif\0\0" + tiff


def phone(folder):
    """A photo of 100 × 90, turned: four tiles, a thumbnail, a depth map, Exif that says the same turn, a profile."""
    upright = quarters(90, 100)
    stored = upright.transpose(Image.Transpose.ROTATE_90)
    assert stored.size == (100, 90)
    padded = Image.new("RGB", (2 * TILE, 2 * TILE), (40, 40, 220))
    padded.paste(stored)
    tiles = [padded.crop((x, y, x + TILE, y + TILE)) for y in (0, TILE) for x in (0, TILE)]
    data = [coded(folder, tile) for tile in tiles]
    configuration = data[0][0]
    small, small_data = coded(folder, stored.resize((TILE, TILE)))
    depth, depth_data = coded(folder, Image.new("RGB", (TILE, TILE), (128, 128, 128)))
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    items = [
        (1, b"grid", struct.pack(">BBBBHH", 0, 0, 1, 1, 100, 90)),
        *((2 + at, b"hvc1", contents) for at, (_, contents) in enumerate(data)),
        (6, b"hvc1", small_data),
        (7, b"hvc1", depth_data),
        (8, b"Exif", exif(6)),
    ]
    references = [
        (b"dimg", 1, [2, 3, 4, 5]), (b"thmb", 6, [1]), (b"auxl", 7, [1]), (b"cdsc", 8, [1]),
    ]
    properties = [
        size(100, 90), size(TILE, TILE), configuration, box(b"irot", b"\3"), box(b"colr", b"prof", profile), small, depth,
        full(b"auxC", 0, 0, b"urn:mpeg:hevc:2015:auxid:2\0"), full(b"pixi", 0, 0, b"\3\x08\x08\x08"),
    ]
    associations = [
        (1, [1, 5, 9, 4 | 0x80]), *((number, [2, 3 | 0x80]) for number in range(2, 6)), (6, [2, 6 | 0x80]),
        (7, [2, 7 | 0x80, 8 | 0x80]),
    ]
    write("phone.heic", items, references, properties, associations, hidden=range(2, 6))


def mirrored(folder):
    """A picture of 64 × 48, cropped from 64 × 64, then turned by 180°, then mirrored."""
    upright = quarters(64, 48)
    stored = upright.transpose(Image.Transpose.FLIP_LEFT_RIGHT).transpose(Image.Transpose.ROTATE_180)
    padded = Image.new("RGB", (64, 64), (0, 0, 0))
    padded.paste(stored)
    configuration, data = coded(folder, padded)
    # The crop's center, relative to that of the picture.
    crop = box(b"clap", struct.pack(">IIIIiIiI", 64, 1, 48, 1, 0, 1, -8, 1))
    properties = [size(64, 64), configuration, crop, box(b"irot", b"\2"), box(b"imir", b"\1")]
    write("mirrored.heic", [(1, b"hvc1", data)], [], properties, [(1, [1, 2 | 0x80, 3 | 0x80, 4 | 0x80, 5 | 0x80])])


if __name__ == "__main__":
    sys.exit(main())
