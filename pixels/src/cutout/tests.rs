use std::io::{Cursor, Read};

use image::{ImageFormat, Rgba};

use super::arrange::find_subject;
use crate::bounds::Bounds;
use image::RgbaImage;

use super::options::pixels;
use super::*;

const RED: Rgba<u8> = Rgba([200, 10, 20, 255]);

const AS_IT_IS: CutoutOptions = CutoutOptions {
    crop: None,
    scale: None,
    position: Position::Original,
    max_pixels: None,
    background: None,
    channels: Channels::Rgba,
    format: Format::Png,
};

const NO_MARGINS: Margins = Margins {
    top: Length::Pixels(0),
    right: Length::Pixels(0),
    bottom: Length::Pixels(0),
    left: Length::Pixels(0),
};

/// 40 × 20, with a red subject of 8 × 4 at (10, 6).
fn cut() -> RgbaImage {
    RgbaImage::from_fn(40, 20, |x, y| {
        if (10..18).contains(&x) && (6..10).contains(&y) { RED } else { Rgba([0, 0, 255, 0]) }
    })
}

fn png(picture: &RgbaImage) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).expect("a PNG");
    bytes.into_inner().into()
}

fn shaped(options: &CutoutOptions) -> CutoutFile {
    render(&png(&cut()), options).expect("shaped")
}

fn picture(shaped: &CutoutFile) -> RgbaImage {
    image::load_from_memory(&shaped.bytes).expect("a picture").into_rgba8()
}

fn subject(options: &CutoutOptions) -> (u32, u32, Bounds) {
    let picture = picture(&shaped(options));
    (picture.width(), picture.height(), find_subject(&picture).expect("a subject"))
}

#[test]
fn a_png_is_returned_unchanged_if_the_options_change_nothing() {
    let source = png(&cut());
    let same = render(&source, &AS_IT_IS).expect("shaped");
    assert_eq!((same.bytes, same.content_type), (source, "image/png"));
    assert_eq!((same.width, same.height, same.full_width, same.full_height), (40, 20, 40, 20));
}

#[test]
fn a_crop_leaves_the_subject_and_its_margins() {
    let bare = CutoutOptions { crop: Some(NO_MARGINS), ..AS_IT_IS };
    assert_eq!(subject(&bare), (8, 4, Bounds { left: 0, top: 0, width: 8, height: 4 }));
    let margins = Margins {
        top: Length::Pixels(1),
        right: Length::Share(0.5),
        bottom: Length::Share(0.25),
        left: Length::Pixels(30),
    };
    let wide = CutoutOptions { crop: Some(margins), ..AS_IT_IS };
    // Beyond the original picture the margin is transparent.
    assert_eq!(subject(&wide), (42, 6, Bounds { left: 30, top: 1, width: 8, height: 4 }));
}

#[test]
fn invisible_pixels_do_not_belong_to_the_subject() {
    let mut faint = cut();
    faint.put_pixel(0, 0, Rgba([9, 9, 9, 4]));
    faint.put_pixel(39, 19, Rgba([9, 9, 9, 5]));
    let found = find_subject(&faint);
    assert_eq!(found, Some(Bounds { left: 10, top: 6, width: 30, height: 14 }));
    assert_eq!(find_subject(&RgbaImage::new(3, 3)), None);
}

#[test]
fn an_empty_picture_cannot_be_cropped_and_stays() {
    let options = CutoutOptions { crop: Some(NO_MARGINS), scale: Some(0.5), ..AS_IT_IS };
    let empty = render(&png(&RgbaImage::new(7, 5)), &options).expect("shaped");
    assert_eq!((empty.width, empty.height), (7, 5));
}

#[test]
fn the_subject_is_moved_from_edge_to_edge() {
    for (x, y, left, top) in [(0.0, 0.0, 0, 0), (1.0, 1.0, 32, 16), (0.5, 0.25, 16, 4)] {
        let options = CutoutOptions { position: Position::At { x, y }, ..AS_IT_IS };
        assert_eq!(subject(&options), (40, 20, Bounds { left, top, width: 8, height: 4 }));
    }
}

#[test]
fn the_subject_is_scaled_to_its_share_of_the_canvas() {
    let center = Position::At { x: 0.5, y: 0.5 };
    let whole = CutoutOptions { scale: Some(1.0), position: center, ..AS_IT_IS };
    assert_eq!(subject(&whole), (40, 20, Bounds { left: 0, top: 0, width: 40, height: 20 }));
    let half = CutoutOptions { scale: Some(0.5), ..whole };
    assert_eq!(subject(&half), (40, 20, Bounds { left: 10, top: 5, width: 20, height: 10 }));
    // Its center stays at (14, 8) as far as the canvas allows.
    let there = CutoutOptions { scale: Some(0.5), position: Position::Original, ..AS_IT_IS };
    assert_eq!(subject(&there), (40, 20, Bounds { left: 4, top: 3, width: 20, height: 10 }));
}

#[test]
fn a_picture_shrinks_to_the_limit_and_reports_its_full_size() {
    let small = shaped(&CutoutOptions { max_pixels: Some(200), ..AS_IT_IS });
    assert_eq!((small.width, small.height), (20, 10));
    assert_eq!((small.full_width, small.full_height), (40, 20));
    assert_eq!(picture(&small).dimensions(), (20, 10));
    // The red subject is surrounded by invisible blue; its edge must stay red.
    for pixel in picture(&small).pixels().filter(|pixel| pixel.0[3] >= 100) {
        assert!(pixel.0[2] <= 25, "{pixel:?}");
    }
    let roomy = shaped(&CutoutOptions { max_pixels: Some(800), ..AS_IT_IS });
    assert_eq!((roomy.width, roomy.height), (40, 20));
}

#[test]
fn the_pixel_limit_is_never_exceeded() {
    for (width, height) in
        [(6250, 4000), (6000, 6000), (3001, 7), (501, 500), (1, 6000), (999, 998)]
    {
        let picture = RgbaImage::new(width, height);
        let small = arrange::shrink(picture, 250_000).expect("shrunk");
        assert!(pixels(small.width(), small.height()) <= 250_000, "{width} x {height}");
        if (width, height) == (6250, 4000) {
            assert_eq!(small.dimensions(), (625, 400));
        }
    }
}

#[test]
fn pixels_too_faint_to_see_do_not_belong_to_the_subject() {
    for (alpha, width) in [(FAINTEST - 1, 8), (FAINTEST, 30)] {
        let mut faint = cut();
        faint.put_pixel(39, 19, Rgba([9, 9, 9, alpha]));
        let options = CutoutOptions { crop: Some(NO_MARGINS), ..AS_IT_IS };
        assert_eq!(render(&png(&faint), &options).expect("shaped").width, width);
    }
}

#[test]
fn a_background_shows_through_transparent_pixels() {
    let mut half = RgbaImage::from_pixel(3, 1, Rgba([100, 200, 0, 128]));
    half.put_pixel(0, 0, RED);
    half.put_pixel(2, 0, Rgba([1, 2, 3, 0]));
    colors::put_behind(&mut half, [0, 0, 255, 255]);
    assert_eq!(half.get_pixel(0, 0), &RED);
    assert_eq!(half.get_pixel(1, 0), &Rgba([50, 100, 127, 255]));
    assert_eq!(half.get_pixel(2, 0), &Rgba([0, 0, 255, 255]));
    let mut glass = RgbaImage::from_pixel(1, 1, Rgba([1, 2, 3, 0]));
    colors::put_behind(&mut glass, [10, 20, 30, 77]);
    assert_eq!(glass.get_pixel(0, 0), &Rgba([10, 20, 30, 77]));
    let mut nothing = RgbaImage::from_pixel(1, 1, Rgba([1, 2, 3, 0]));
    colors::put_behind(&mut nothing, [0; 4]);
    assert_eq!(nothing.get_pixel(0, 0).0[3], 0);
}

#[test]
fn colors_are_parsed_as_in_css() {
    for (text, color_of_it) in [
        ("81d4fa", Some([0x81, 0xd4, 0xfa, 255])),
        ("#81D4FA77", Some([0x81, 0xd4, 0xfa, 0x77])),
        ("fff", Some([255; 4])),
        ("#1234", Some([0x11, 0x22, 0x33, 0x44])),
        ("Green", Some([0, 128, 0, 255])),
        ("rebeccapurple", Some([0x66, 0x33, 0x99, 255])),
        ("yellowgreen", Some([0x9a, 0xcd, 0x32, 255])),
        ("aliceblue", Some([0xf0, 0xf8, 0xff, 255])),
        ("transparent", Some([0; 4])),
        ("12345", None),
        ("#", None),
        ("+ff", None),
        ("no such color", None),
    ] {
        assert_eq!(parse_color(text), color_of_it, "{text}");
    }
}

#[test]
fn auto_is_a_png_only_if_something_is_transparent() {
    let auto = CutoutOptions { format: Format::Auto, ..AS_IT_IS };
    assert_eq!(shaped(&auto).content_type, "image/png");
    let on_green = CutoutOptions { background: Some([0, 128, 0, 255]), ..auto };
    let made = shaped(&on_green);
    assert_eq!(made.content_type, "image/jpeg");
    assert_eq!(image::guess_format(&made.bytes).ok(), Some(ImageFormat::Jpeg));
    let corner = picture(&made).get_pixel(39, 19).0;
    assert!(corner[0] < 10 && corner[1].abs_diff(128) < 10 && corner[2] < 10, "{corner:?}");
}

#[test]
fn a_jpeg_is_white_where_the_cutout_is_transparent() {
    let made = shaped(&CutoutOptions { format: Format::Jpeg, ..AS_IT_IS });
    assert_eq!(made.content_type, "image/jpeg");
    let corner = picture(&made).get_pixel(39, 19).0;
    assert!(corner[..3].iter().all(|channel| *channel > 250), "{corner:?}");
}

#[test]
fn a_webp_is_lossless_where_it_is_visible() {
    let made = shaped(&CutoutOptions { format: Format::WebP, ..AS_IT_IS });
    assert_eq!(made.content_type, "image/webp");
    for (made, cut) in picture(&made).pixels().zip(cut().pixels()) {
        assert!(made == cut || made.0[3] == 0 && cut.0[3] == 0);
    }
}

#[test]
fn alpha_alone_is_a_gray_picture() {
    let made = shaped(&CutoutOptions { channels: Channels::Alpha, ..AS_IT_IS });
    let gray = image::load_from_memory(&made.bytes).expect("a picture");
    assert_eq!(gray.color(), image::ColorType::L8);
    let gray = gray.into_luma8();
    assert_eq!((gray.get_pixel(10, 6).0, gray.get_pixel(9, 6).0), ([255], [0]));
}

#[test]
fn a_zip_contains_color_and_alpha() {
    let made = shaped(&CutoutOptions { format: Format::Zip, ..AS_IT_IS });
    assert_eq!(made.content_type, "image/jpeg", "it can still get marks");
    let made = made.pack().unwrap();
    assert_eq!(made.content_type, "application/zip");
    let mut archive = zip::ZipArchive::new(Cursor::new(made.bytes)).expect("a ZIP");
    assert_eq!(archive.len(), 2);
    let mut read = |name: &str| {
        let mut bytes = Vec::new();
        archive.by_name(name).expect(name).read_to_end(&mut bytes).expect(name);
        image::load_from_memory(&bytes).expect(name)
    };
    let (colors, alpha) = (read("color.jpg").into_rgb8(), read("alpha.png"));
    assert_eq!((colors.dimensions(), alpha.color()), ((40, 20), image::ColorType::L8));
    assert_eq!(alpha.into_luma8().get_pixel(14, 8).0, [255]);
    let middle = colors.get_pixel(14, 8).0;
    assert!(middle[0] > 150 && middle[1] < 60, "{middle:?}");
}

#[test]
fn a_background_looks_as_asked_for_whatever_the_profile_of_the_cutout() {
    use image::{DynamicImage, ImageEncoder};
    use moxcms::{ColorProfile, Layout, TransformOptions};
    const CRIMSON: [u8; 3] = [226, 0, 26];
    let wide = ColorProfile::new_display_p3();
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    encoder.set_icc_profile(wide.encode().expect("it encodes")).expect("PNG takes profiles");
    DynamicImage::ImageRgba8(cut()).write_with_encoder(encoder).expect("a PNG");
    let [r, g, b] = CRIMSON;
    let options = CutoutOptions { background: Some([r, g, b, 255]), ..AS_IT_IS };
    let [r, g, b, alpha] =
        picture(&render(&bytes.into(), &options).expect("rendered")).get_pixel(0, 0).0;
    let (screen, settings) = (ColorProfile::new_srgb(), TransformOptions::default());
    let transform = wide.create_transform_8bit(Layout::Rgb, &screen, Layout::Rgb, settings);
    let mut seen = [0; 3];
    transform.expect("it works").transform(&[r, g, b], &mut seen).expect("the lengths fit");
    let apart = seen.iter().zip(CRIMSON).map(|(one, other)| one.abs_diff(other)).max();
    assert!(alpha == 255 && apart <= Some(2), "{seen:?}");
    assert_eq!(picture(&shaped(&options)).get_pixel(0, 0).0, [226, 0, 26, 255]);
}

#[test]
fn the_color_profile_is_kept() {
    use image::codecs::png::PngDecoder;
    use image::{DynamicImage, ImageDecoder, ImageEncoder};
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    encoder.set_icc_profile(b"a profile".to_vec()).expect("PNG takes profiles");
    DynamicImage::ImageRgba8(cut()).write_with_encoder(encoder).expect("a PNG");
    let options = CutoutOptions { max_pixels: Some(200), ..AS_IT_IS };
    let made = render(&bytes.into(), &options).expect("shaped");
    let mut decoder = PngDecoder::new(Cursor::new(made.bytes)).expect("a PNG");
    assert_eq!(decoder.icc_profile().expect("read"), Some(b"a profile".to_vec()));
}
