//! Decoding and rendering take no more memory than their estimates say. A program of its own, because it measures the
//! whole process.

use std::fs;
use std::io::Cursor;

use bytes::Bytes;
use image::{DynamicImage, ImageBuffer, ImageFormat};
use img_parts::ImageEXIF;
use img_parts::jpeg::Jpeg;
use img_parts::png::{Png, PngChunk};
use img_parts::webp::WebP;
use retouch_pixels::cutout::{self, Channels, CutoutOptions, Format, Length, Margins, Position};
use retouch_pixels::decode::Header;
use retouch_pixels::exif::Exif;
use retouch_pixels::finish::{self, Background, Crop, Finish, Gradient, Output, Quality, Shadow};
use retouch_pixels::{Limits, upload};

const SIDE: u32 = 6000;
const MIB: u64 = 1 << 20;

/// Returns a number of bytes from `/proc/self/status`.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().expect(name) * 1024
}

/// Returns the memory that `work` takes at its peak, in bytes.
fn peak<T>(work: impl FnOnce() -> T) -> u64 {
    // Resets the peak (proc(5)).
    fs::write("/proc/self/clear_refs", "5").expect("this is Linux");
    let before = status("VmRSS");
    drop(work());
    status("VmHWM").saturating_sub(before)
}

/// Compares a peak with its estimate, which must not be wasteful either.
fn check(name: &str, peak: u64, estimate: u64) {
    println!("{name}: {} MiB at the peak, {} MiB reserved", peak / MIB, estimate / MIB);
    assert!(peak <= estimate, "{name} takes more than its estimate");
    assert!(estimate <= 3 * peak, "{name} takes far less than its estimate");
}

/// A pseudorandom sample, which does not compress.
fn noise(x: u32, y: u32) -> u32 {
    let mut value = (x * 7919 + y * 104_729) ^ 0x2545_f491;
    value ^= value << 13;
    value ^= value >> 17;
    value ^ value << 5
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("it encodes");
    bytes.into_inner().into()
}

fn photo() -> DynamicImage {
    let picture = ImageBuffer::from_fn(SIDE, SIDE, |x, y| {
        let [r, g, b, _] = noise(x / 4, y / 4).to_le_bytes();
        image::Rgb([r, g, b])
    });
    DynamicImage::ImageRgb8(picture)
}

/// EXIF data that says: turn by 90 degrees.
fn turned_exif() -> Bytes {
    Bytes::from_static(b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0")
}

/// A progressive JPEG of a few hundred kilobytes: two scans with only the mean of each block, each in one bit.
fn progressive() -> Bytes {
    let [high, low] = (SIDE as u16).to_be_bytes();
    let mut file = vec![0xff, 0xd8, 0xff, 0xdb, 0, 67, 0];
    file.extend([1; 64]);
    file.extend([0xff, 0xc2, 0, 17, 8, high, low, high, low, 3]);
    file.extend([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    file.extend([0xff, 0xc4, 0, 20, 0, 1]);
    file.extend([0; 16]);
    let blocks = SIDE.div_ceil(8).pow(2) * 3;
    for bits in [0x01, 0x10] {
        file.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, bits]);
        file.resize(file.len() + blocks.div_ceil(8) as usize, 0);
    }
    file.extend([0xff, 0xd9]);
    file.into()
}

/// A lossless WebP of one color and half a megabyte, with thousands of groups of Huffman codes that take 70 kB each.
fn tables() -> Bytes {
    const GROUPS: u32 = 4000;
    let mut bits = Vec::new();
    let mut write =
        |value: u32, length: u32| bits.extend((0..length).map(|bit| (value >> bit) & 1 == 1));
    // A code of one symbol, which takes no bits.
    let single = |symbol: u32| (0b101 | (symbol << 3), 11);
    write(0x2f, 8);
    write(SIDE - 1, 14);
    write(SIDE - 1, 14);
    write(0, 4);
    // No transforms, a cache of 2,048 colors, blocks of 512 pixels that all have the last group.
    write(0b0, 1);
    write(1 | (11 << 1), 5);
    write(0b1, 1);
    write(7, 3);
    write(0, 1);
    for symbol in [(GROUPS - 1) & 255, (GROUPS - 1) >> 8, 0, 0, 0] {
        let (value, length) = single(symbol);
        write(value, length);
    }
    for _ in 1..GROUPS {
        // 2,048 of the 2,328 symbols have codes of 11 bits. A code of lengths for 11 (two bits), for repeating it
        // (one bit) and for many zeros (two bits) says so.
        write(0, 1);
        write(11, 4);
        for length in [0, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2] {
            write(length, 3);
        }
        write(0, 1);
        write(0b01, 2);
        for _ in 0..341 {
            write(0b110, 3);
        }
        write(0b01, 2);
        for zeros in [138, 131, 11] {
            write(0b11 | ((zeros - 11) << 2), 9);
        }
        for _ in 1..5 {
            let (value, length) = single(0);
            write(value, length);
        }
    }
    // The color, and a distance that no pixel uses.
    for symbol in [200, 200, 200, 200, 0] {
        let (value, length) = single(symbol);
        write(value, length);
    }
    let stream: Vec<u8> = bits
        .chunks(8)
        .map(|bits| bits.iter().rev().fold(0, |byte, bit| (byte << 1) | u8::from(*bit)))
        .collect();
    let length = stream.len() + stream.len() % 2;
    let mut file = b"RIFF".to_vec();
    file.extend((length as u32 + 12).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend((stream.len() as u32).to_le_bytes());
    file.extend(stream);
    file.resize(20 + length, 0);
    file.into()
}

fn uploads() -> Vec<(&'static str, Bytes)> {
    let deep = ImageBuffer::from_pixel(SIDE, SIDE, image::Rgba([65535_u16, 900, 7, 40_000]));
    let deep = encoded(&DynamicImage::ImageRgba16(deep), ImageFormat::Png);
    println!("a PNG of 16 bits per sample: {} kB", deep.len() / 1000);
    let mut turned = Png::from_bytes(deep.clone()).expect("a PNG");
    turned.chunks_mut().insert(1, PngChunk::new(*b"eXIf", turned_exif()));
    let photo = photo();
    let jpeg = encoded(&photo, ImageFormat::Jpeg);
    let mut turned_jpeg = Jpeg::from_bytes(jpeg.clone()).expect("a JPEG");
    turned_jpeg.set_exif(Some(turned_exif()));
    let gray = encoded(&DynamicImage::ImageLuma8(photo.to_luma8()), ImageFormat::Jpeg);
    let webp = encoded(&DynamicImage::ImageRgba8(photo.to_rgba8()), ImageFormat::WebP);
    vec![
        ("a PNG of 16 bits per sample", deep),
        ("the same, turned", turned.encoder().bytes()),
        ("a JPEG", jpeg),
        ("the same, turned", turned_jpeg.encoder().bytes()),
        ("a gray JPEG", gray),
        ("a progressive JPEG", progressive()),
        ("a lossless WebP", webp),
        ("a lossless WebP of many Huffman codes", tables()),
    ]
}

/// Files as large as their pixels, also when they are rotated and encoded again.
fn large_uploads() -> Vec<(&'static str, Bytes)> {
    let noise = ImageBuffer::from_fn(SIDE, SIDE, |x, y| {
        let [r, g, b, _] = noise(x, y).to_le_bytes();
        image::Rgb([r, g, b])
    });
    let noise = encoded(&DynamicImage::ImageRgb8(noise), ImageFormat::Png);
    let mut turned = Png::from_bytes(noise.clone()).expect("a PNG");
    turned.chunks_mut().insert(1, PngChunk::new(*b"eXIf", turned_exif()));
    vec![("a PNG of noise that keeps EXIF", noise), ("the same, turned", turned.encoder().bytes())]
}

/// A PNG and a WebP with an EXIF block of 24 MiB: a thumbnail in millions of strips.
fn long_exif() -> Vec<(&'static str, Bytes)> {
    const COUNT: u32 = 6 << 20;
    let mut block = b"II*\0\x08\0\0\0\0\0\x0e\0\0\0\x02\0".to_vec();
    for tag in [0x0111_u16, 0x0117] {
        // Both have this many numbers of 32 bits, in the same place.
        block.extend([tag, 4].map(u16::to_le_bytes).concat());
        block.extend([COUNT, 44].map(u32::to_le_bytes).concat());
    }
    block.resize(44 + 4 * COUNT as usize, 0);
    let block = Bytes::from(block);
    let picture = DynamicImage::new_rgb8(16, 16);
    let mut png = Png::from_bytes(encoded(&picture, ImageFormat::Png)).expect("a PNG");
    png.chunks_mut().insert(1, PngChunk::new(*b"eXIf", block.clone()));
    let mut webp = WebP::from_bytes(encoded(&picture, ImageFormat::WebP)).expect("a WebP");
    webp.set_exif(Some(block));
    vec![("a PNG", png.encoder().bytes()), ("a WebP", webp.encoder().bytes())]
}

/// Nothing is reserved for what is read before the picture.
fn headers(limits: Limits) {
    for (name, file) in long_exif() {
        let header = peak(|| Header::read(&file, &limits).expect(name));
        let exif = peak(|| Exif::of(&file));
        println!("{name} of {} MiB: {header} and {exif} bytes", file.len() as u64 / MIB);
        assert!(header.max(exif) < MIB, "{name} with a long EXIF block takes memory");
    }
}

#[test]
fn the_estimates_of_memory_hold() {
    let limits = Limits { max_dimension: SIDE };
    headers(limits);
    let exif = Exif::parse(&turned_exif()).expect("a block");
    for (name, file) in large_uploads() {
        let estimate = Header::read(&file, &limits).expect(name).prepare_bytes();
        let peak = peak(|| upload::prepare(&file, &limits, true, Some(&exif)).expect(name));
        check(name, peak, estimate);
    }
    for (name, file) in uploads() {
        let estimate = Header::read(&file, &limits).expect(name).prepare_bytes();
        let peak = peak(|| upload::prepare(&file, &limits, true, None).expect(name));
        check(name, peak, estimate);
    }

    let cutout = ImageBuffer::from_fn(SIDE, SIDE, |x, y| {
        let [r, g, b, _] = noise(x / 4, y / 4).to_le_bytes();
        image::Rgba([r, g, b, if x % 16 == 0 { 90 } else { 255 }])
    });
    let cutout = encoded(&DynamicImage::ImageRgba8(cutout), ImageFormat::Png);
    let plain = CutoutOptions {
        crop: None,
        scale: None,
        position: Position::Original,
        max_pixels: None,
        background: Some([10, 20, 30, 255]),
        channels: Channels::Rgba,
        format: Format::Png,
    };
    let margin = Length::Share(0.05);
    let margins = Margins { top: margin, right: margin, bottom: margin, left: margin };
    for (name, options) in [
        ("a PNG on a color", plain.clone()),
        ("a JPEG", CutoutOptions { format: Format::Jpeg, ..plain.clone() }),
        ("a lossless WebP", CutoutOptions { format: Format::WebP, ..plain.clone() }),
        ("a ZIP", CutoutOptions { format: Format::Zip, background: None, ..plain.clone() }),
        ("a preview", CutoutOptions { max_pixels: Some(250_000), ..plain.clone() }),
        (
            "a cropped preview",
            CutoutOptions { crop: Some(margins), max_pixels: Some(250_000), ..plain.clone() },
        ),
        (
            "a scaled and cropped one",
            CutoutOptions { crop: Some(margins), scale: Some(0.9), ..plain },
        ),
    ] {
        let estimate = cutout::memory_bytes(SIDE, SIDE, &options);
        let peak = peak(|| cutout::render(&cutout, &options).expect(name));
        check(&format!("{name} of a cutout"), peak, estimate);
    }
    finishing(&cutout, limits);
}

fn finishing(cutout: &Bytes, limits: Limits) {
    let original = encoded(&photo(), ImageFormat::Jpeg);
    let header = Header::read(&original, &limits).expect("a JPEG");
    let touch_up = ImageBuffer::from_pixel(SIDE, SIDE, image::Luma([100_u8]));
    let touch_up = Some(encoded(&DynamicImage::ImageLuma8(touch_up), ImageFormat::Png));
    let shadow = Some(Shadow { opacity: 0.5, blur: 0.01, x: 5.0, y: 5.0 });
    let crop = Some(Crop { margin: 0.0, aspect: Some((1, 1)) });
    let quality = Quality::new(95.0).expect("a quality");
    let gradient = Gradient { from: [0; 3], to: [255; 3], angle: 30.0 };
    let gradient = Some(Background::Gradient(gradient));
    let picture = Some(Background::Picture(original.clone()));
    let blur = |percent| Some(Background::Blur { percent });
    for (name, finish) in [
        ("a JPEG", Finish::convert(Output::Jpeg(quality))),
        ("a lossy WebP", Finish::convert(Output::WebP(quality))),
        ("a lossless WebP", Finish::convert(Output::WebP(Quality::BEST))),
        ("a touch-up", Finish { touch_up, ..Finish::convert(Output::Png) }),
        ("a gradient", Finish { background: gradient, ..Finish::convert(Output::Png) }),
        ("a faint blur", Finish { background: blur(0.01), ..Finish::convert(Output::Png) }),
        ("a blur", Finish { background: blur(1.0), shadow, ..Finish::convert(Output::Png) }),
        ("a picture", Finish { background: picture, shadow, ..Finish::convert(Output::Png) }),
        ("a crop with a shadow", Finish { shadow, crop, ..Finish::convert(Output::Png) }),
    ] {
        let estimate = {
            let original = Some(&header).filter(|_| finish.needs_original());
            finish::memory_bytes((SIDE, SIDE), &finish, original, Some(&header))
        };
        let peak = peak(|| finish::render(cutout, Some(&original), &finish, &limits).expect(name));
        check(&format!("{name} of a finished cutout"), peak, estimate);
    }
}
