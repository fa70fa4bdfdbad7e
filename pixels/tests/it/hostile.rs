//! Damaged and malicious files.

use std::io::Cursor;
use std::time::{Duration, Instant};

use image::{DynamicImage, ImageFormat};
use retouch_pixels::decode::{Foreign, Header, decode};
use retouch_pixels::{Limits, PixelError};

use super::fixture;

fn refused(bytes: &[u8]) -> PixelError {
    decode(bytes, &Limits::default()).map(drop).expect_err("it must be refused")
}

/// Returns the shortest of five times that `work` takes, because the machine may be busy.
fn best_of_five(work: impl Fn()) -> Duration {
    let times = (0..5).map(|_| {
        let started = Instant::now();
        work();
        started.elapsed()
    });
    times.min().expect("five times")
}

/// Returns the start of a PNG that claims this many pixels per side.
fn bomb(side: u32) -> Vec<u8> {
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(side.to_be_bytes());
    png.extend(side.to_be_bytes());
    png.extend(b"\x08\x06\0\0\0\0\0\0\0");
    png.resize(2_600_000, 0);
    png
}

#[test]
fn unreadable_files_are_refused() {
    let photo = fixture("photos/chelsea.png");
    let jpeg = fixture("photos/coffee.jpg");
    assert_eq!(refused(b"just a text"), PixelError::UnsupportedFormat);
    for bytes in [&b""[..], &photo[..photo.len() / 2], &jpeg[..jpeg.len() / 2]] {
        let error = refused(bytes);
        assert!(matches!(error, PixelError::Unreadable(_)), "{error}");
    }
}

#[test]
fn a_decompression_bomb_is_refused_by_its_header() {
    let png = bomb(30_000);
    let mut jpeg = fixture("photos/coffee.jpg");
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0] || pair == [0xff, 0xc2]);
    let frame = frame.expect("a JPEG has a frame header");
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0x75, 0x30, 0x75, 0x30]);
    for bytes in [png, jpeg] {
        let expected = PixelError::TooLarge { width: 30_000, height: 30_000, max_dimension: 6000 };
        let took = best_of_five(|| assert_eq!(refused(&bytes), expected));
        assert!(took < Duration::from_millis(10), "it took {took:?}");
    }
}

#[test]
fn a_file_of_nothing_but_chunks_is_refused_at_once() {
    let png = [&bomb(16)[..33], &b"\0\0\0\0junk\0\0\0\0".repeat(2_000_000)].concat();
    let mut webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\0\0\x0f\0\0".to_vec();
    webp.extend(b"EXIF\0\0\0\0".repeat(3_000_000));
    let length = webp.len() as u32 - 8;
    webp[4..8].copy_from_slice(&length.to_le_bytes());
    for bytes in [png, webp] {
        let took = best_of_five(|| {
            let error = refused(&bytes).to_string();
            assert!(error.ends_with("it has too many chunks"), "{error}");
        });
        assert!(took < Duration::from_millis(10), "it took {took:?}");
    }
}

#[test]
fn a_webp_whose_stream_is_larger_than_its_picture_is_refused_by_its_header() {
    let gray = vec![128; 2000 * 1500 * 3];
    let file = webp::Encoder::from_rgb(&gray, 2000, 1500).encode_simple(false, 1.0).unwrap();
    let stream = &file[12..];
    assert!(stream.starts_with(b"VP8 "));
    let chunk = |name: &[u8; 4], parts: &[&[u8]]| {
        let data = parts.concat();
        [name, &(data.len() as u32).to_le_bytes()[..], &data].concat()
    };
    let sides = |side: u32| (side - 1).to_le_bytes();
    // Extended files of this size: an opaque picture, one with transparency, and one that also has a frame.
    let files = |width: u32, height: u32| {
        let size = [&sides(width)[..3], &sides(height)[..3]].concat();
        let alpha = chunk(b"ALPH", &[&[0, 0]]);
        let frame = chunk(b"ANMF", &[&[0; 6], &size, &[0; 4], &alpha, stream]);
        let profile = chunk(b"ICCP", &[&[0, 0]]);
        [(0, [&profile, stream]), (0x10, [&alpha, stream]), (0, [&frame, stream])].map(
            |(flags, parts)| {
                let header = chunk(b"VP8X", &[&[flags, 0, 0, 0], &size]);
                chunk(b"RIFF", &[b"WEBP", &header, parts[0], parts[1]])
            },
        )
    };
    let limits = Limits::default();
    for file in files(2000, 1500) {
        assert!(Header::read(&file, &limits).is_ok(), "it is of the picture's size");
    }
    for (width, height) in [(64, 64), (1999, 1500), (2000, 1499)] {
        for (file, name) in
            files(width, height).iter().zip(["opaque", "transparent", "with a frame"])
        {
            let read = Header::read(file, &limits);
            let damaged = PixelError::Unreadable("it is damaged".into());
            assert_eq!(read.err(), Some(damaged), "{name}, {width} × {height}");
        }
    }
}

#[test]
fn an_animation_is_refused_by_its_header() {
    // The decoder would take any chunk behind the transparency of a frame for a lossy stream, whatever its name and size.
    let frame =
        b"ANMF\x2c\0\0\0\0\0\0\0\0\0\x3f\0\0\x3f\0\0\0\0\0\0ALPH\x02\0\0\0\0\0abcd\x0a\0\0\0";
    let stream = b"\x10\0\0\x9d\x01\x2a\xff\x3f\xff\x3f";
    let start =
        b"RIFF\x58\0\0\0WEBPVP8X\x0a\0\0\0\x12\0\0\0\x3f\0\0\x3f\0\0ANIM\x06\0\0\0\0\0\0\0\0\0";
    let file = [&start[..], frame, stream].concat();
    assert_eq!(refused(&file), PixelError::Foreign(Foreign::Animation("WebP")));
}

#[test]
fn padding_behind_a_file_does_no_harm() {
    for format in [ImageFormat::Png, ImageFormat::WebP] {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::new_rgba8(16, 16).write_to(&mut bytes, format).expect("it encodes");
        let mut bytes = bytes.into_inner();
        bytes.resize(2_000_000, 0);
        assert!(decode(&bytes, &Limits::default()).is_ok(), "{format:?}");
    }
}

#[test]
fn other_kinds_of_jpeg_are_refused_by_name() {
    let photo = fixture("photos/coffee.jpg");
    let frame = photo.windows(2).position(|pair| pair == [0xff, 0xc0]).expect("it is baseline");
    for (marker, bits, name) in [
        (0xc1, 12, "12-bit JPEG"),
        (0xc3, 8, "lossless JPEG"),
        (0xc5, 8, "hierarchical JPEG"),
        (0xc9, 8, "JPEG (arithmetic coding)"),
        (0xf7, 8, "JPEG-LS"),
    ] {
        let mut other = photo.clone();
        (other[frame + 1], other[frame + 4]) = (marker, bits);
        assert_eq!(refused(&other), PixelError::Foreign(Foreign::Other(name)));
    }
}

#[test]
fn a_baseline_jpeg_with_several_scans_is_refused_by_name() {
    for name in ["pictures/separate-scans.jpg", "pictures/paired-scans.jpg"] {
        let expected = PixelError::Foreign(Foreign::Other("non-interleaved JPEG"));
        assert_eq!(refused(&fixture(name)), expected, "{name}");
    }
}

#[test]
fn a_jpeg_whose_luma_has_fewer_columns_than_its_chroma_is_refused_by_name() {
    let mut file = fixture("pictures/interleaved.jpg");
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).expect("it is baseline");
    let mut read = |sampling: [u8; 3]| {
        for (component, factors) in sampling.into_iter().enumerate() {
            file[frame + 11 + 3 * component] = factors;
        }
        Header::read(&file, &Limits::default()).map(drop)
    };
    let foreign = PixelError::Foreign(Foreign::Other("JPEG (subsampled luma)"));
    for sampling in [[0x11, 0x22, 0x22], [0x12, 0x21, 0x21], [0x11, 0x11, 0x21]] {
        assert_eq!(read(sampling), Err(foreign.clone()), "{sampling:x?}");
    }
    for sampling in [[0x22, 0x11, 0x22], [0x21, 0x12, 0x12], [0x11, 0x11, 0x11]] {
        assert_eq!(read(sampling), Ok(()), "{sampling:x?}");
    }
}

#[test]
fn a_wrong_bit_of_a_jpeg_never_makes_flat_gray() {
    for name in ["pictures/interleaved.jpg", "pictures/progressive-scans.jpg"] {
        let whole = fixture(name);
        let scan = whole.windows(2).position(|pair| pair == [0xff, 0xda]).expect("it has a scan");
        for at in scan + 14..whole.len() - 2 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            let Ok(picture) = decode(&damaged, &Limits::default()) else { continue };
            let pixels = picture.rgb.as_chunks::<3>().0;
            let gray = pixels.iter().filter(|pixel| **pixel == [128; 3]).count();
            assert!(gray < pixels.len() / 50, "{name}, byte {at}: {gray} gray pixels");
        }
    }
}

#[test]
fn a_jpeg_whose_scans_end_early_is_refused_although_it_has_an_end_marker() {
    for name in [
        "photos/coffee.jpg",
        "pictures/progressive.jpg",
        "pictures/progressive-scans.jpg",
        "pictures/restarts.jpg",
    ] {
        let whole = fixture(name);
        assert!(decode(&whole, &Limits::default()).is_ok(), "{name}");
        let scan = whole.windows(2).position(|pair| pair == [0xff, 0xda]).expect("it has a scan");
        for percent in [20, 50, 80] {
            let mut cut = whole[..scan + (whole.len() - scan) * percent / 100].to_vec();
            while cut.last() == Some(&0xff) {
                cut.pop();
            }
            cut.extend([0xff, 0xd9]);
            let damaged = PixelError::Unreadable("it is damaged".into());
            assert_eq!(refused(&cut), damaged, "{name}, {percent} %");
        }
    }
}

#[test]
fn a_jpeg_that_ends_within_its_last_restart_interval_is_refused() {
    let mut cut = fixture("pictures/uneven-restarts.jpg");
    assert!(decode(&cut, &Limits::default()).is_ok());
    let last = cut.windows(2).rposition(|pair| pair == [0xff, 0xd5]).expect("it has restarts");
    cut.truncate(last + 20);
    cut.extend([0xff, 0xd9]);
    assert_eq!(refused(&cut), PixelError::Unreadable("it is damaged".into()));
}

#[test]
fn a_jpeg_that_ends_at_a_restart_is_refused() {
    let whole = fixture("pictures/uneven-restarts.jpg");
    let is_restart = |at: &usize| whole[*at] == 0xff && (0xd0..=0xd7).contains(&whole[at + 1]);
    let restarts: Vec<_> = (0..whole.len() - 1).filter(is_restart).collect();
    assert_eq!(restarts.len(), 6);
    for at in restarts {
        let cut = [&whole[..at], &[0xff, 0xd9]].concat();
        assert_eq!(refused(&cut), PixelError::Unreadable("it is damaged".into()), "byte {at}");
    }
}

#[test]
fn a_progressive_jpeg_with_restarts_and_scans_of_single_components_is_read() {
    let expected = decode(&fixture("pictures/interleaved.jpg"), &Limits::default());
    let picture = decode(&fixture("pictures/progressive-scans.jpg"), &Limits::default());
    assert!(picture.is_ok() && picture == expected, "{:?}", picture.err());
}

#[test]
fn jfif_prevails_over_the_color_transform_of_adobe() {
    let mut file = fixture("photos/coffee.jpg");
    assert_eq!(&file[6..11], b"JFIF\0");
    let expected = decode(&file, &Limits::default()).expect("a sound photo");
    file.splice(2..2, *b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0");
    assert!(decode(&file, &Limits::default()) == Ok(expected.clone()), "its colors differ");
    // Without JFIF, Adobe's transform counts: RGB.
    file.drain(18..36);
    let rgb = decode(&file, &Limits::default()).expect("a sound photo");
    assert!(rgb.rgb != expected.rgb, "it has the colors of YCbCr");
}

#[test]
fn segments_between_or_behind_the_scans_of_a_jpeg_do_no_harm() {
    for name in ["pictures/progressive.jpg", "pictures/interleaved.jpg"] {
        let whole = fixture(name);
        let expected = decode(&whole, &Limits::default()).expect("a sound picture");
        let last = whole.windows(2).rposition(|pair| pair == [0xff, 0xda]).expect("it has scans");
        let end = whole.len() - 2;
        for (at, marker) in [(last, 0xe2), (last, 0xe4), (end, 0xe1), (end, 0xe4), (end, 0xfe)] {
            let segment = [0xff, marker, 0, 5, b'a', b'b', b'c'];
            let file = [&whole[..at], &segment, &whole[at..]].concat();
            let read = decode(&file, &Limits::default());
            assert!(read.as_ref() == Ok(&expected), "{name}, {marker:x}: {:?}", read.err());
        }
    }
}

#[test]
fn harmless_faults_of_a_jpeg_do_not_change_its_pixels() {
    let whole = fixture("photos/coffee.jpg");
    let expected = decode(&whole, &Limits::default()).expect("a sound photo");
    let trailing = [&whole[..], &[0x55; 5000]].concat();
    let filled = [&whole[..whole.len() - 2], &[0xff, 0xff, 0xff, 0xd9]].concat();
    for (name, file) in [("trailing bytes", trailing), ("fill bytes", filled)] {
        let read = decode(&file, &Limits::default());
        assert!(read.as_ref() == Ok(&expected), "{name}: {:?}", read.err());
    }
}

#[test]
fn the_decoder_never_panics_on_mutated_files() {
    let small = DynamicImage::ImageRgb8(image::RgbImage::from_fn(40, 30, |x, y| {
        image::Rgb([(x * 6) as u8, (y * 8) as u8, (x ^ y) as u8])
    }));
    let encoded = |image: &DynamicImage, format| {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).expect("it encodes");
        bytes.into_inner()
    };
    let seeds = [
        encoded(&small, ImageFormat::Png),
        encoded(&DynamicImage::ImageLumaA16(small.to_luma_alpha16()), ImageFormat::Png),
        encoded(&small, ImageFormat::Jpeg),
        encoded(&small, ImageFormat::WebP),
        fixture("pictures/palette.png"),
        fixture("pictures/cmyk.jpg"),
    ];
    let limits = Limits { max_dimension: 200 };
    let mut random = Random(20_261_121);
    let mut readable = 0;
    for round in 0..6000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 if bytes.len() > 40 => bytes.truncate(at.max(20)),
                _ => bytes.insert(at, random.below(256) as u8),
            }
        }
        readable += usize::from(decode(&bytes, &limits).is_ok());
    }
    assert!(readable > 100, "only {readable} mutations still decode: the test proves nothing");
}

/// Knuth's linear congruential generator: the same files on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
