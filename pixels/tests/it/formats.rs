//! Decoding every kind of picture that users upload.

use std::io::Cursor;

use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat, RgbImage};
use img_parts::{Bytes, ImageEXIF};
use retouch_pixels::decode::decode;
use retouch_pixels::{Limits, Picture};

use super::fixture;

fn read(bytes: &[u8]) -> Picture {
    decode(bytes, &Limits::default()).expect("it decodes")
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("it encodes");
    bytes.into_inner()
}

/// Returns an upright picture without symmetry.
fn upright() -> RgbImage {
    RgbImage::from_fn(48, 32, |x, y| image::Rgb([(x * 5) as u8, (y * 7) as u8, (x * y % 50) as u8]))
}

/// Returns the EXIF orientation that undoes this one.
const fn inverse(exif: u8) -> u8 {
    match exif {
        6 => 8,
        8 => 6,
        other => other,
    }
}

/// Returns EXIF data with the single entry `Orientation` (0x0112, a short).
fn exif(orientation: u8) -> Vec<u8> {
    let mut tiff = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    tiff.extend([orientation, 0, 0, 0, 0, 0, 0]);
    tiff
}

/// Returns the picture as a camera stores it with this EXIF orientation.
fn stored(orientation: u8) -> DynamicImage {
    let mut image = DynamicImage::ImageRgb8(upright());
    let turn = Orientation::from_exif(inverse(orientation)).expect("1 to 8 are orientations");
    image.apply_orientation(turn);
    image
}

#[test]
fn all_eight_orientations_give_the_same_picture() {
    for orientation in 1..=8 {
        let image = stored(orientation);
        let mut png = Vec::new();
        let mut encoder = PngEncoder::new(&mut png);
        encoder.set_exif_metadata(exif(orientation)).expect("PNG takes EXIF");
        image.write_with_encoder(encoder).expect("it encodes");

        let mut webp = Vec::new();
        image.write_with_encoder(WebPEncoder::new_lossless(&mut webp)).expect("it encodes");
        let mut webp = img_parts::webp::WebP::from_bytes(webp.into()).expect("it is a WebP");
        webp.set_exif(Some(exif(orientation).into()));
        let webp = webp.encoder().bytes();

        for bytes in [&png[..], &webp[..]] {
            let picture = read(bytes);
            assert_eq!((picture.width, picture.height), (48, 32), "orientation {orientation}");
            assert!(picture.rgb == *upright().as_raw(), "orientation {orientation}");
        }

        let jpeg = encoded(&image, ImageFormat::Jpeg);
        let mut jpeg = img_parts::jpeg::Jpeg::from_bytes(jpeg.into()).expect("it is a JPEG");
        jpeg.set_exif(Some(Bytes::from(exif(orientation))));
        let picture = read(&jpeg.encoder().bytes());
        assert_eq!((picture.width, picture.height), (48, 32), "orientation {orientation}");
        let pairs = picture.rgb.iter().zip(upright().into_raw());
        let error: u32 = pairs.map(|(a, b)| u32::from(a.abs_diff(b))).sum();
        assert!(error / (48 * 32 * 3) < 12, "orientation {orientation}: {error}");
    }
}

#[test]
fn the_orientation_is_found_behind_a_prefix_and_after_the_pixels() {
    let image = stored(6);
    let prefixed = [&b"Exif\0\0"[..], &exif(6)].concat();
    let mut png = img_parts::png::Png::from_bytes(encoded(&image, ImageFormat::Png).into())
        .expect("it is a PNG");
    let chunk = |data: &[u8]| img_parts::png::PngChunk::new(*b"eXIf", data.to_vec().into());
    let mut with_prefix = png.clone();
    with_prefix.chunks_mut().insert(1, chunk(&prefixed));
    let end = png.chunks().len() - 1;
    png.chunks_mut().insert(end, chunk(&exif(6)));
    let mut webp = Vec::new();
    image.write_with_encoder(WebPEncoder::new_lossless(&mut webp)).expect("it encodes");
    let mut webp = img_parts::webp::WebP::from_bytes(webp.into()).expect("it is a WebP");
    webp.set_exif(Some(prefixed.into()));
    let files = [with_prefix.encoder().bytes(), png.encoder().bytes(), webp.encoder().bytes()];
    for (file, name) in
        files.iter().zip(["a prefix in PNG", "after the pixels", "a prefix in WebP"])
    {
        let picture = read(file);
        assert!(picture.rgb == *upright().as_raw(), "{name}");
        let kept = retouch_pixels::exif::Exif::of(file);
        assert!(kept.is_some(), "{name}");
    }
}

#[test]
fn the_first_of_several_orientations_counts() {
    let mut jpeg = img_parts::jpeg::Jpeg::from_bytes(encoded(&stored(6), ImageFormat::Jpeg).into())
        .expect("it is a JPEG");
    for orientation in [3, 6] {
        let contents = [&b"Exif\0\0"[..], &exif(orientation)].concat().into();
        let segment = img_parts::jpeg::JpegSegment::new_with_contents(0xe1, contents);
        jpeg.segments_mut().insert(0, segment);
    }
    let picture = read(&jpeg.encoder().bytes());
    assert_eq!((picture.width, picture.height), upright().dimensions());
}

/// Returns the profile of a PNG with these chunks.
fn profile_of(chunks: &[(&[u8; 4], &[u8])]) -> Option<Vec<u8>> {
    let png = encoded(&upright().into(), ImageFormat::Png);
    let mut png = img_parts::png::Png::from_bytes(png.into()).expect("it is a PNG");
    for (name, data) in chunks {
        let chunk = img_parts::png::PngChunk::new(**name, data.to_vec().into());
        png.chunks_mut().insert(1, chunk);
    }
    read(&png.encoder().bytes()).icc
}

#[test]
fn a_wide_gamut_given_in_numbers_becomes_a_profile() {
    let with = |numbers: [u8; 4]| profile_of(&[(b"cICP", &numbers)]);
    for (primaries, name) in [(12, "Display P3"), (9, "BT.2020")] {
        let icc = with([primaries, 13, 0, 1]).expect(name);
        assert_eq!((&icc[16..20], &icc[36..40]), (&b"RGB "[..], &b"acsp"[..]), "{name}");
    }
    assert_eq!(with([1, 13, 0, 1]), None, "sRGB needs none");
    assert!(with([1, 8, 0, 1]).is_some(), "linear samples need one");
    assert_ne!(with([12, 8, 0, 1]), with([12, 13, 0, 1]), "linear samples are darker");
}

#[test]
fn numbers_take_precedence_over_an_embedded_profile_if_a_profile_can_be_made_of_them() {
    let embedded = profile_of(&[(b"cICP", &[12, 13, 0, 1])]).expect("Display P3");
    let with = |numbers: [u8; 4]| {
        let mut png = Vec::new();
        let mut encoder = PngEncoder::new(&mut png);
        encoder.set_icc_profile(embedded.clone()).expect("PNG takes profiles");
        DynamicImage::from(upright()).write_with_encoder(encoder).expect("it encodes");
        let mut png = img_parts::png::Png::from_bytes(png.into()).expect("it is a PNG");
        let chunk = img_parts::png::PngChunk::new(*b"cICP", numbers.to_vec().into());
        png.chunks_mut().insert(1, chunk);
        read(&png.encoder().bytes()).icc
    };
    assert_eq!(with([1, 13, 0, 1]), None, "sRGB needs none");
    assert_eq!(with([9, 13, 0, 1]), profile_of(&[(b"cICP", &[9, 13, 0, 1])]), "BT.2020");
    for numbers in
        [[9, 16, 0, 1], [9, 18, 0, 1], [2, 2, 0, 1], [4, 13, 0, 1], [10, 13, 0, 1], [11, 8, 0, 1]]
    {
        assert_eq!(with(numbers).as_ref(), Some(&embedded), "{numbers:?}");
    }
}

#[test]
fn a_gamma_and_chromaticities_become_a_profile() {
    let chromaticities = |green: (u32, u32)| {
        let all = [31_270, 32_900, 64_000, 33_000, green.0, green.1, 15_000, 6_000_u32];
        all.map(u32::to_be_bytes).concat()
    };
    let (narrow, wide) = (chromaticities((30_000, 60_000)), chromaticities((21_000, 71_000)));
    let (display, linear) = (45_455_u32.to_be_bytes(), 100_000_u32.to_be_bytes());
    assert_eq!(profile_of(&[(b"gAMA", &display), (b"cHRM", &narrow)]), None, "sRGB needs none");
    for chunks in [
        &[(b"gAMA", &linear[..])][..],
        &[(b"gAMA", &display), (b"cHRM", &wide)],
        &[(b"gAMA", &linear), (b"cHRM", &narrow)],
    ] {
        assert_eq!(profile_of(chunks).expect("a profile")[16..20], *b"RGB ");
    }
    let overruled = [(b"gAMA", &linear[..]), (b"sRGB", &[0])];
    assert_eq!(profile_of(&overruled), None, "sRGB counts first");
}

#[test]
fn gray_and_sixteen_bit_pictures_become_eight_bit_rgb() {
    let gray = image::GrayImage::from_pixel(3, 2, image::Luma([90]));
    let picture = read(&encoded(&gray.into(), ImageFormat::Png));
    assert_eq!((picture.rgb, picture.alpha), (vec![90; 18], None));

    let gray_alpha = image::GrayAlphaImage::from_pixel(1, 1, image::LumaA([90, 40]));
    let picture = read(&encoded(&gray_alpha.into(), ImageFormat::Png));
    assert_eq!((picture.rgb, picture.alpha), (vec![90; 3], Some(vec![40])));

    let deep = image::ImageBuffer::from_pixel(1, 1, image::Rgba([65535_u16, 128, 129, 25700]));
    let picture = read(&encoded(&DynamicImage::ImageRgba16(deep), ImageFormat::Png));
    assert_eq!((picture.rgb, picture.alpha), (vec![255, 0, 1], Some(vec![100])));
}

#[test]
fn palettes_are_expanded_with_their_transparency() {
    let picture = read(&fixture("pictures/palette.png"));
    assert_eq!(picture.rgb[..3], [200, 40, 60]);
    assert_eq!(picture.rgb[47 * 3..48 * 3], [30, 160, 220]);
    let alpha = picture.alpha.expect("one color is transparent");
    assert_eq!((alpha[0], alpha[47]), (255, 0));
}

#[test]
fn cmyk_is_converted_and_not_inverted() {
    let picture = read(&fixture("pictures/cmyk.jpg"));
    assert_eq!((picture.width, picture.height), (48, 32));
    let near = |pixel: &[u8], expected: [u8; 3]| {
        pixel.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 8)
    };
    assert!(near(&picture.rgb[..3], [200, 40, 60]), "{:?}", &picture.rgb[..3]);
    assert!(near(&picture.rgb[47 * 3..48 * 3], [30, 160, 220]));
}

#[test]
fn the_icc_profile_reaches_the_result_unchanged() {
    let mut profile: Vec<u8> = (0..3000_u32).map(|i| (i * i % 253) as u8).collect();
    profile[..4].copy_from_slice(&3000_u32.to_be_bytes());
    profile[16..20].copy_from_slice(b"RGB ");
    profile[36..40].copy_from_slice(b"acsp");
    profile[128..132].fill(0);
    let mut png = Vec::new();
    let mut encoder = PngEncoder::new(&mut png);
    encoder.set_icc_profile(profile.clone()).expect("PNG takes profiles");
    encoder.write_image(upright().as_raw(), 48, 32, ExtendedColorType::Rgb8).expect("it encodes");
    let picture = read(&png);
    assert_eq!(picture.icc.as_ref(), Some(&profile));

    let pixels = vec![200; 48 * 32 * 4];
    let icc = picture.icc.as_deref();
    let result = retouch_pixels::encode::Rgba { width: 48, height: 32, pixels: &pixels, icc };
    let png = retouch_pixels::encode::encode_png(result).expect("it encodes");
    assert_eq!(read(&png).icc, Some(profile));
}

#[test]
fn interlaced_pictures_are_put_together() {
    // Adam7, which the encoder cannot write: each pass as a picture of its own (PNG, 8.2).
    let (width, height) = (13_u32, 11_u32);
    let sample = |x: u32, y: u32| [(x * 19) as u8, (y * 23) as u8, (x * y) as u8, 255 - x as u8];
    let passes = [
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ];
    let mut rows = Vec::new();
    for (left, top, across, down) in passes {
        for y in (top..height).step_by(down) {
            let xs = (left..width).step_by(across);
            rows.push(0);
            // 16 bits per sample, both bytes alike.
            rows.extend(xs.flat_map(|x| sample(x, y).map(|value| [value; 2])).flatten());
        }
    }
    let mut file = Vec::new();
    let mut info = png::Info::with_size(width, height);
    info.color_type = png::ColorType::Rgba;
    info.bit_depth = png::BitDepth::Sixteen;
    info.interlaced = true;
    let mut encoder = png::Encoder::with_info(&mut file, info).expect("it encodes");
    encoder.set_compression(png::Compression::NoCompression);
    let mut writer = encoder.write_header().expect("it encodes");
    let mut compressed = vec![0x78, 0x01, 1];
    let length = u16::try_from(rows.len()).expect("one block");
    compressed.extend(length.to_le_bytes());
    compressed.extend((!length).to_le_bytes());
    compressed.extend_from_slice(&rows);
    let (a, b) = rows.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    compressed.extend((b << 16 | a).to_be_bytes());
    writer.write_chunk(png::chunk::IDAT, &compressed).expect("it encodes");
    drop(writer);
    let picture = read(&file);
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| sample(x, y)));
    let (rgb, alpha): (Vec<[u8; 3]>, Vec<u8>) =
        pixels.map(|[r, g, b, alpha]| ([r, g, b], alpha)).unzip();
    assert_eq!((picture.rgb, picture.alpha), (rgb.concat(), Some(alpha)));
}
