//! Files as several makers write them come out upright, with their colors.

use bytes::Bytes;
use image::{ImageDecoder, ImageFormat, ImageReader};
use retouch_heif::{Codec, Header, Heif, HeifConfig, Support};
use retouch_pixels::decode::{self, Foreign};
use retouch_pixels::{Limits, PixelError};

use crate::{config, convert, picture};

const RED: [u8; 3] = [220, 40, 40];
const GREEN: [u8; 3] = [40, 180, 40];
const BLUE: [u8; 3] = [40, 40, 220];
const WHITE: [u8; 3] = [235, 235, 235];

#[tokio::test(flavor = "multi_thread")]
async fn every_layout_comes_out_upright_with_its_colors() {
    let support = Heif::new(&config()).unwrap().support().await;
    assert!(support.heic && support.avif, "the tests need libheif1 of Debian: {support:?}");
    for (name, codec, size) in [
        ("single.heic", Codec::Heic, (65, 43)),
        ("single.avif", Codec::Avif, (65, 43)),
        ("ten-bit.heic", Codec::Heic, (65, 43)),
        ("ten-bit.avif", Codec::Avif, (65, 43)),
        ("p3.avif", Codec::Avif, (65, 43)),
        // Tiles, a rotation that Exif repeats, a thumbnail, a depth map, a profile.
        ("phone.heic", Codec::Heic, (90, 100)),
        ("mirrored.heic", Codec::Heic, (64, 48)),
    ] {
        let file = picture(name);
        let header = Header::read(&file, &Limits::default()).unwrap();
        assert_eq!((header.codec, (header.width, header.height)), (codec, size), "{name}");
        let jpeg = convert(&file).await.expect(name);
        assert!(jpeg.starts_with(&[0xff, 0xd8]), "{name} is no JPEG");
        let decoded = decode::decode(&jpeg, &Limits::default()).unwrap();
        assert_eq!((decoded.width, decoded.height), size, "{name}");
        let (right, bottom) = (size.0 - 6, size.1 - 6);
        for ((x, y), expected) in
            [((5, 5), RED), ((right, 5), GREEN), ((right, bottom), BLUE), ((5, bottom), WHITE)]
        {
            let at = (y * size.0 + x) as usize * 3;
            let found = &decoded.rgb[at..at + 3];
            let is_near = found.iter().zip(expected).all(|(one, other)| one.abs_diff(other) <= 5);
            assert!(is_near, "{name} at {x}, {y}: {found:?}, not {expected:?}");
        }
        let has_profile = matches!(name, "phone.heic" | "p3.avif");
        assert_eq!(decoded.icc.is_some(), has_profile, "{name}");
        let mut reader =
            ImageReader::with_format(std::io::Cursor::new(&jpeg[..]), ImageFormat::Jpeg)
                .into_decoder()
                .unwrap();
        assert_eq!(reader.exif_metadata().unwrap(), None, "{name} keeps where it was taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transparency_becomes_a_png() {
    for name in ["alpha.heic", "alpha.avif"] {
        let png = convert(&picture(name)).await.expect(name);
        assert!(png.starts_with(b"\x89PNG"), "{name}");
        let decoded = decode::decode(&png, &Limits::default()).unwrap();
        let alpha = decoded.alpha.expect(name);
        let at = |x: usize, y: usize| alpha[y * 65 + x];
        assert_eq!((at(5, 5), at(60, 38), at(5, 38)), (255, 255, 0), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn high_dynamic_range_is_mapped_to_what_a_jpeg_can_say() {
    let jpeg = convert(&picture("pq.avif")).await.unwrap();
    let decoded = decode::decode(&jpeg, &Limits::default()).unwrap();
    // The brightest quarter is far brighter than white paper, and the others are not.
    let white = &decoded.rgb[(38 * 65 + 5) * 3..][..3];
    assert!(white.iter().all(|sample| *sample > 245), "{white:?}");
    assert_eq!(decoded.icc, None);
}

#[tokio::test]
async fn without_the_library_such_files_are_refused_with_what_to_do() {
    for library in ["libabsent.so.1", ""] {
        let heif = Heif::new(&HeifConfig { heif_library: library.to_owned(), ..config() }).unwrap();
        let Support { heic, avif, detail } = heif.support().await;
        assert!(!heic && !avif && !detail.is_empty(), "{library}: {detail}");
        for (name, format) in [("single.heic", "HEIC"), ("single.avif", "AVIF")] {
            let file = Bytes::from(picture(name));
            let refused = heif.readable(file, &Limits::default()).await.unwrap_err();
            assert_eq!(refused, PixelError::Foreign(Foreign::Unavailable(format)));
            let text =
                format!("{format} files cannot be read here. Save the picture as JPEG or PNG");
            assert!(refused.to_string().starts_with(&text), "{refused}");
        }
        // Pictures in other formats pass through unchanged.
        let png = Bytes::from_static(b"\x89PNG\r\n\x1a\n");
        assert_eq!(heif.readable(png.clone(), &Limits::default()).await, Ok(png));
    }
}
