//! Preparing uploads: upright, without metadata, with the color profile.

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageEncoder, Rgb, RgbImage};
use img_parts::jpeg::Jpeg;
use img_parts::png::{Png, PngChunk};
use img_parts::{ImageEXIF, ImageICC};
use retouch_pixels::decode::{Foreign, decode};
use retouch_pixels::upload::{self, Upload};
use retouch_pixels::{Limits, PixelError};

fn prepare(file: &Bytes) -> Result<Upload, PixelError> {
    upload::prepare(file, &Limits::default(), true, None)
}

/// Returns a JPEG whose upper left quarter is red, stored with this EXIF orientation.
fn jpeg(orientation: u8, profile: Option<&[u8]>) -> Bytes {
    let upright = RgbImage::from_fn(64, 32, |x, y| {
        if x < 32 && y < 16 { Rgb([220, 20, 20]) } else { Rgb([20, 20, 220]) }
    });
    let upright = DynamicImage::ImageRgb8(upright);
    // A viewer undoes this.
    let stored = match orientation {
        1 => upright,
        2 => upright.fliph(),
        3 => upright.rotate180(),
        4 => upright.flipv(),
        5 => upright.rotate90().fliph(),
        6 => upright.rotate270(),
        7 => upright.rotate270().fliph(),
        _ => upright.rotate90(),
    };
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
    if let Some(profile) = profile {
        encoder.set_icc_profile(profile.to_vec()).expect("a JPEG in memory");
    }
    stored.write_with_encoder(encoder).expect("a JPEG in memory");
    let mut jpeg = Jpeg::from_bytes(bytes.into()).expect("a JPEG in memory");
    let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    exif.extend(b"GPS 47.3769 N 8.5417 E");
    jpeg.set_exif(Some(exif.into()));
    jpeg.encoder().bytes()
}

/// An ICC profile of RGB samples that is well-formed but says nothing.
fn sound_profile() -> Vec<u8> {
    let mut profile = vec![0; 160];
    profile[..4].copy_from_slice(&160_u32.to_be_bytes());
    profile[16..20].copy_from_slice(b"RGB ");
    profile[36..40].copy_from_slice(b"acsp");
    profile
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[test]
fn every_orientation_becomes_upright_and_loses_its_gps_position() {
    for orientation in 1..=8 {
        let file = jpeg(orientation, None);
        assert!(contains(&file, b"GPS 47"));
        let picture = prepare(&file).unwrap();
        assert_eq!((picture.width, picture.height), (64, 32), "orientation {orientation}");
        assert!(!contains(&picture.bytes, b"GPS 47"), "orientation {orientation}");
        for bytes in [&picture.bytes, &picture.thumbnail] {
            let shown = image::load_from_memory(bytes).unwrap().to_rgb8();
            assert!(shown.get_pixel(8, 8)[0] > 180, "orientation {orientation}");
            assert!(shown.get_pixel(56, 24)[2] > 180, "orientation {orientation}");
        }
    }
}

#[test]
fn an_upright_jpeg_keeps_its_compressed_data_and_its_profile() {
    let profile = sound_profile();
    let file = jpeg(1, Some(&profile));
    let picture = prepare(&file).unwrap();
    assert_eq!(Jpeg::from_bytes(picture.bytes.clone()).unwrap().icc_profile().unwrap(), profile);
    assert_eq!(
        image::load_from_memory(&file).unwrap().to_rgb8(),
        image::load_from_memory(&picture.bytes).unwrap().to_rgb8()
    );
    let turned = prepare(&jpeg(6, Some(&profile))).unwrap();
    assert_eq!(Jpeg::from_bytes(turned.bytes).unwrap().icc_profile().unwrap(), profile);
}

#[test]
fn a_png_loses_its_comments_and_trailing_bytes() {
    let mut png = Png::from_bytes(crate::png(20, 10).into()).unwrap();
    png.chunks_mut().insert(1, PngChunk::new(*b"tEXt", Bytes::from_static(b"Author\0somebody")));
    png.chunks_mut().insert(1, PngChunk::new(*b"gAMA", Bytes::from_static(&[0, 0, 0xb1, 0x8f])));
    let mut file = png.encoder().bytes().to_vec();
    file.extend(b"PK\x03\x04 an archive");
    let picture = prepare(&file.into()).unwrap();
    assert!(!contains(&picture.bytes, b"somebody") && !contains(&picture.bytes, b"PK\x03\x04"));
    assert!(contains(&picture.bytes, b"gAMA"));
    assert_eq!(picture.content_type, "image/png");
}

#[test]
fn an_animation_of_one_frame_is_a_still_picture() {
    let with_frames = |frames: u8| {
        let mut png = Png::from_bytes(super::png(40, 30).into()).unwrap();
        let control = vec![0, 0, 0, frames, 0, 0, 0, 0];
        // Of the size of the picture, at the origin, for a second.
        let frame = [[0, 0, 0, 0], [0, 0, 0, 40], [0, 0, 0, 30], [0; 4], [0; 4], [0, 1, 0, 1]];
        let frame = [&frame.concat()[..], &[0, 0]].concat();
        png.chunks_mut().insert(1, PngChunk::new(*b"acTL", control.into()));
        png.chunks_mut().insert(2, PngChunk::new(*b"fcTL", frame.into()));
        png.encoder().bytes()
    };
    let picture = prepare(&with_frames(1)).unwrap();
    assert!(!contains(&picture.bytes, b"acTL") && !contains(&picture.bytes, b"fcTL"));
    let shown = image::load_from_memory(&picture.bytes).unwrap();
    assert_eq!(shown, image::load_from_memory(&super::png(40, 30)).unwrap());
    let refused = prepare(&with_frames(2)).unwrap_err();
    assert_eq!(refused, PixelError::Foreign(Foreign::Animation("APNG")));
}

#[test]
fn a_jpeg_loses_trailing_bytes() {
    let mut file = jpeg(1, None).to_vec();
    file.extend(b"PK\x03\x04 an archive");
    let picture = prepare(&file.into()).unwrap();
    assert!(!contains(&picture.bytes, b"PK\x03\x04"));
    assert_eq!(picture.bytes[picture.bytes.len() - 2..], [0xff, 0xd9]);
}

#[test]
fn a_webp_loses_its_metadata_and_still_opens() {
    let mut bytes = Vec::new();
    let pixels = RgbImage::from_pixel(30, 20, Rgb([9, 8, 7]));
    image::codecs::webp::WebPEncoder::new_lossless(&mut bytes)
        .write_image(&pixels, 30, 20, image::ExtendedColorType::Rgb8)
        .unwrap();
    let mut webp = img_parts::webp::WebP::from_bytes(bytes.into()).unwrap();
    webp.set_exif(Some(Bytes::from_static(b"II*\0\x08\0\0\0\0\0 GPS 47")));
    let picture = prepare(&webp.encoder().bytes()).unwrap();
    assert!(!contains(&picture.bytes, b"GPS 47"));
    assert_eq!(image::load_from_memory(&picture.bytes).unwrap().to_rgb8(), pixels);
}

#[test]
fn a_webp_keeps_nothing_but_its_picture_and_profile() {
    let chunk = |name: &[u8; 4], contents: &[u8]| {
        let mut chunk = [&name[..], &(contents.len() as u32).to_le_bytes(), contents].concat();
        chunk.resize(chunk.len() + chunk.len() % 2, 0);
        chunk
    };
    for (width, alpha) in [(30, 255), (31, 90)] {
        let pixels = image::RgbaImage::from_pixel(width, 20, image::Rgba([9, 8, 7, alpha]));
        let mut plain = std::io::Cursor::new(Vec::new());
        pixels.write_to(&mut plain, image::ImageFormat::WebP).unwrap();
        let plain = plain.into_inner();
        // The flags announce a profile, EXIF, XMP, and what is reserved.
        let header = [0xfd, 0xff, 0xff, 0xff, width as u8 - 1, 0, 0, 19, 0, 0];
        let mut file = plain[..12].to_vec();
        file.extend(chunk(b"VP8X", &header));
        file.extend(&plain[12..]);
        for name in [b"C2PA", b"JUNK", b"ANIM", b"XMP ", b"EXIF"] {
            file.extend(chunk(name, b"somebody's GPS"));
        }
        let length = (file.len() - 8) as u32;
        file[4..8].copy_from_slice(&length.to_le_bytes());
        let stored = prepare(&file.into()).unwrap().bytes;
        assert!(!contains(&stored, b"somebody"), "alpha {alpha}");
        assert_eq!(stored.len(), plain.len() + 18, "the extended header and the pixels");
        assert_eq!(stored[20..24], [0x10, 0, 0, 0], "only alpha is left of the flags");
        assert_eq!(image::load_from_memory(&stored).unwrap().to_rgba8(), pixels);
    }
}

#[test]
fn a_jpeg_keeps_only_what_the_segments_of_its_standards_say() {
    let with = |segments: &[(u8, &[u8])]| {
        let file = jpeg(1, None);
        let mut all = file[..2].to_vec();
        for (marker, contents) in segments {
            all.extend([0xff, *marker]);
            all.extend((contents.len() as u16 + 2).to_be_bytes());
            all.extend(*contents);
        }
        // After the segment that the encoder wrote.
        all.extend(&file[2 + 2 + usize::from(u16::from_be_bytes([file[4], file[5]]))..]);
        prepare(&all.into()).unwrap().bytes
    };
    let thumbnail = [&b"JFIF\0\x01\x02\0\0\x48\0\x48\x02\x02"[..], b"a face, seen"].concat();
    let adobe = b"Adobe\0\x64\0\0\0\0\x01";
    let stored = with(&[
        (0xe0, &thumbnail),
        (0xe0, b"JFXX\0\x10a face, seen"),
        (0xe0, b"AVI1 a face, seen"),
        (0xee, b"a face, seen"),
        (0xee, &[&adobe[..], b"a face, seen"].concat()),
    ]);
    assert!(!contains(&stored, b"face"));
    assert!(contains(&stored, b"\xff\xe0\0\x10JFIF\0\x01\x02\0\0\x48\0\x48\0\0\xff"));
    assert!(contains(&stored, &[&b"\xff\xee\0\x0e"[..], adobe].concat()));
    for marker in [b"\xff\xe0", b"\xff\xee"] {
        assert_eq!(stored.windows(2).filter(|pair| pair == marker).count(), 1, "{marker:?}");
    }
    image::load_from_memory(&stored).unwrap();
}

#[test]
fn a_frame_of_motion_jpeg_without_huffman_tables_still_opens() {
    let file = jpeg(1, None);
    let mut frame = file[..2].to_vec();
    frame.extend(b"\xff\xe0\0\x10AVI1\0 a face!!");
    let mut at = 2;
    // The encoder writes the tables of the standard, which the decoder has.
    while file[at + 1] != 0xda {
        let length = 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        if file[at + 1] != 0xc4 {
            frame.extend(&file[at..at + length]);
        }
        at += length;
    }
    frame.extend(&file[at..]);
    let stored = prepare(&frame.clone().into()).unwrap().bytes;
    assert!(!contains(&stored, b"face") && stored.len() < frame.len());
    let decoded = |bytes: &[u8]| decode(bytes, &Limits::default()).unwrap();
    assert!(decoded(&stored) == decoded(&file));
}

#[test]
fn the_thumbnail_keeps_transparency() {
    let pixels = image::RgbaImage::from_fn(1000, 500, |x, _| {
        image::Rgba([200, 10, 10, if x < 500 { 0 } else { 255 }])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let picture = prepare(&bytes.into_inner().into()).unwrap();
    assert_eq!(picture.thumbnail_type, "image/png");
    let small = image::load_from_memory(&picture.thumbnail).unwrap().to_rgba8();
    assert_eq!((small.width(), small.height()), (512, 256));
    assert_eq!((small.get_pixel(10, 10)[3], small.get_pixel(500, 10)[3]), (0, 255));
    // There is no dark fringe between transparent and opaque pixels.
    assert!(small.pixels().filter(|pixel| pixel[3] > 0).all(|pixel| pixel[0] > 190));
}

#[test]
fn a_truncated_jpeg_is_refused_in_every_orientation() {
    for orientation in 1..=8 {
        let whole = jpeg(orientation, None);
        let cut = whole.slice(..whole.len() * 2 / 3);
        assert!(prepare(&whole).is_ok());
        assert!(
            matches!(prepare(&cut), Err(PixelError::Unreadable(_))),
            "orientation {orientation}"
        );
    }
}

#[test]
fn damaged_files_are_refused_without_a_panic() {
    let seeds = [jpeg(6, Some(b"profile")).to_vec(), crate::png(40, 30)];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut refused = 0;
    for round in 0..4_000 {
        let mut file = seeds[round % 2].clone();
        for _ in 0..=random() % 8 {
            let at = random() % file.len();
            file[at] = random() as u8;
        }
        file.truncate(file.len() - random() % (file.len() / 2));
        refused += usize::from(prepare(&file.into()).is_err());
    }
    assert!(refused > 1_000, "only {refused} files were refused: the test proves nothing");
}

/// Returns a PNG whose compressed color profile claims `bytes` bytes.
fn png_with_profile(bytes: usize) -> Bytes {
    let mut profile = sound_profile();
    profile.resize(bytes, 0);
    profile[..4].copy_from_slice(&(bytes as u32).to_be_bytes());
    let mut file = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut file);
    encoder.set_icc_profile(profile).expect("a profile");
    RgbImage::from_pixel(900, 600, Rgb([9, 8, 7])).write_with_encoder(encoder).expect("a JPEG");
    file.into()
}

#[test]
fn an_oversized_profile_is_dropped() {
    for bytes in [(1 << 20) + 1, 13 << 20, 300 << 20] {
        let file = png_with_profile(bytes);
        let picture = prepare(&file).unwrap();
        assert!(!contains(&picture.bytes, b"iCCP"), "{bytes}");
        assert!(picture.thumbnail.len() < 20_000, "{bytes}: {}", picture.thumbnail.len());
    }
    let mut profile = sound_profile();
    profile.resize((1 << 20) + 1, 0);
    let file = jpeg(1, Some(&profile));
    let stored = prepare(&file).unwrap().bytes;
    assert!(stored.len() < 20_000 && !contains(&stored, b"ICC_PROFILE"), "{}", stored.len());
}

#[test]
fn a_large_profile_stays_with_the_picture_and_not_with_its_thumbnail() {
    let picture = prepare(&png_with_profile(1 << 20)).unwrap();
    assert!(contains(&picture.bytes, b"iCCP"));
    assert!(picture.thumbnail.len() < 20_000, "{}", picture.thumbnail.len());
    let small = prepare(&png_with_profile(3000)).unwrap();
    assert!(contains(&small.thumbnail, b"ICC_PROFILE"));
}
