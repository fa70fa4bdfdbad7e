use std::io::Cursor;

use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};

use super::*;

const RED: Rgba<u8> = Rgba([200, 10, 20, 255]);
const PLAIN: Finish = Finish::convert(Output::Png);

fn encoded(picture: impl Into<image::DynamicImage>) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, ImageFormat::Png).expect("a PNG");
    bytes.into_inner().into()
}

/// 40 × 20, with a red subject of 8 × 4 at (10, 6).
fn cut() -> RgbaImage {
    RgbaImage::from_fn(40, 20, |x, y| {
        if (10..18).contains(&x) && (6..10).contains(&y) { RED } else { Rgba([0; 4]) }
    })
}

/// The picture that the subject was cut out of: its columns differ.
fn original() -> RgbImage {
    RgbImage::from_fn(40, 20, |x, y| match cut().get_pixel(x, y).0 {
        [r, g, b, 255] => Rgb([r, g, b]),
        _ => Rgb([4 * x as u8, 100, 5]),
    })
}

fn render_of(cut: &RgbaImage, finish: &Finish) -> Result<RgbaImage, FinishError> {
    let original = encoded(original());
    let file = render(&encoded(cut.clone()), Some(&original), finish, &crate::Limits::default())?;
    Ok(image::load_from_memory(&file.bytes).expect("a picture").into_rgba8())
}

fn rendered(finish: &Finish) -> RgbaImage {
    render_of(&cut(), finish).expect("rendered")
}

fn pixel(picture: &RgbaImage, x: u32, y: u32) -> [u8; 4] {
    picture.get_pixel(x, y).0
}

fn touch_up(sample: impl Fn(u32, u32) -> u8) -> Bytes {
    encoded(GrayImage::from_fn(40, 20, |x, y| Luma([sample(x, y)])))
}

#[test]
fn a_png_is_returned_unchanged_if_nothing_changes() {
    let source = encoded(cut());
    let same = render(&source, None, &PLAIN, &crate::Limits::default()).expect("rendered");
    assert_eq!((same.bytes, same.content_type), (source, "image/png"));
}

#[test]
fn a_soft_subject_is_composited_over_color_and_shadow() {
    let mut soft = RgbaImage::from_pixel(1, 1, Rgba([200, 100, 0, 128]));
    let white = Finish { background: Some(Background::Color([255, 255, 255])), ..PLAIN };
    // (200 · 128 + 255 · 127) / 255 = 227.4, and so on.
    assert_eq!(pixel(&render_of(&soft, &white).expect("rendered"), 0, 0), [227, 177, 127, 255]);
    let shadow = Some(Shadow { opacity: 0.5, blur: 0.0, x: 0.0, y: 0.0 });
    // The shadow of half a pixel is a quarter black: white becomes 191, and (200 · 128 + 191 · 127) / 255 = 195.5.
    let shaded = render_of(&soft, &Finish { shadow, ..white.clone() }).expect("rendered");
    assert_eq!(pixel(&shaded, 0, 0), [196, 145, 95, 255]);
    // Without a background, alpha is 128 + 64 · 127 / 255 and the colors are darker.
    let floating = render_of(&soft, &Finish { shadow, ..PLAIN }).expect("rendered");
    assert_eq!(pixel(&floating, 0, 0), [160, 80, 0, 160]);
    soft.put_pixel(0, 0, Rgba([0; 4]));
    assert_eq!(pixel(&render_of(&soft, &white).expect("rendered"), 0, 0), [255; 4]);
}

#[test]
fn a_shadow_lies_where_it_is_asked_for() {
    // 25 % of 8 pixels right, 12.5 % up.
    let shadow = Some(Shadow { opacity: 0.6, blur: 0.0, x: 25.0, y: -12.5 });
    let made = rendered(&Finish { shadow, ..PLAIN });
    for (x, y, at) in made.enumerate_pixels() {
        let is_subject = (10..18).contains(&x) && (6..10).contains(&y);
        let is_shadow = (12..20).contains(&x) && (5..9).contains(&y);
        let expected = match (is_subject, is_shadow) {
            (true, _) => RED.0,
            (_, true) => [0, 0, 0, 153],
            _ => [0; 4],
        };
        assert_eq!(at.0, expected, "{x}, {y}");
    }
    let blurred = Some(Shadow { opacity: 1.0, blur: 10.0, x: 0.0, y: 0.0 });
    let made = rendered(&Finish { shadow: blurred, ..PLAIN });
    // The center of the first pixel outside is 0.5 / 0.8 deviations from the edge: 27 % of black.
    let near = pixel(&made, 18, 8)[3];
    assert!((56..78).contains(&near), "{near}");
    assert_eq!(pixel(&made, 30, 8)[3], 0);
}

#[test]
fn a_crop_is_centered_and_filled_beyond_the_picture() {
    let background = Some(Background::Color([1, 2, 3]));
    let crop = Some(Crop { margin: 12.5, aspect: Some((1, 1)) });
    let made = rendered(&Finish { crop, background: background.clone(), ..PLAIN });
    assert_eq!(made.dimensions(), (10, 10));
    let rows: Vec<_> = (0..10).filter(|y| pixel(&made, 5, *y) == RED.0).collect();
    let columns: Vec<_> = (0..10).filter(|x| pixel(&made, *x, 5) == RED.0).collect();
    assert_eq!((rows, columns), ((3..7).collect(), (1..9).collect()));
    // 50 % of 8 pixels around: 16 × 12, which is as high as 1:2 would be wide.
    let tall =
        rendered(&Finish { crop: Some(Crop { margin: 50.0, aspect: Some((1, 2)) }), ..PLAIN });
    assert_eq!(tall.dimensions(), (16, 32), "it leaves the picture above and below");
    assert_eq!((pixel(&tall, 4, 14), pixel(&tall, 4, 13)), (RED.0, [0; 4]));
    let empty = render_of(&RgbaImage::new(40, 20), &Finish { crop, ..PLAIN });
    assert_eq!(empty.expect_err("nothing is left"), FinishError::NothingLeft);
}

#[test]
fn pixels_too_faint_to_see_do_not_belong_to_the_subject() {
    for (alpha, size) in [(FAINTEST - 1, (8, 4)), (FAINTEST, (30, 14))] {
        let mut faint = cut();
        faint.put_pixel(39, 19, Rgba([9, 9, 9, alpha]));
        let crop = Some(Crop { margin: 0.0, aspect: None });
        assert_eq!(render_of(&faint, &Finish { crop, ..PLAIN }).expect("made").dimensions(), size);
    }
}

#[test]
fn a_touch_up_erases_and_restores_in_proportion() {
    let made = rendered(&Finish {
        touch_up: Some(touch_up(|x, y| match (x, y) {
            (10, 6) => 0,
            (11, 6) => 64,
            (12, 6) | (30, 15) => 255,
            (31, 15) => 192,
            _ => 128,
        })),
        ..PLAIN
    });
    assert_eq!(pixel(&made, 10, 6), [0; 4]);
    assert_eq!(pixel(&made, 11, 6), [200, 10, 20, 128]);
    assert_eq!(pixel(&made, 30, 15), [120, 100, 5, 255]);
    // 64 of 127 parts, in the original's colors.
    assert_eq!(pixel(&made, 31, 15), [124, 100, 5, 129]);
    assert_eq!(pixel(&made, 12, 6), RED.0);
    assert_eq!(pixel(&made, 13, 6), RED.0);
}

#[test]
fn restoring_a_soft_pixel_looks_like_fading_to_the_original() {
    let mut soft = cut();
    soft.put_pixel(20, 10, Rgba([250, 0, 40, 100]));
    let background = Some(Background::Color([0, 200, 255]));
    for sample in [128, 150, 200, 254, 255] {
        let touch_up = Some(touch_up(|x, y| if (x, y) == (20, 10) { sample } else { 128 }));
        let finish = Finish { touch_up, background: background.clone(), ..PLAIN };
        let made = pixel(&render_of(&soft, &finish).expect("rendered"), 20, 10);
        let share = f64::from(sample - 128) / 127.0;
        for (channel, (cut, behind, original)) in
            [(250.0, 0.0, 80.0), (0.0, 200.0, 100.0), (40.0, 255.0, 5.0)].into_iter().enumerate()
        {
            let before = cut * 100.0 / 255.0 + behind * 155.0 / 255.0;
            let expected = before * (1.0 - share) + original * share;
            let difference = f64::from(made[channel]) - expected;
            assert!(difference.abs() <= 1.5, "{sample}: {made:?} instead of {expected}");
        }
    }
}

#[test]
fn a_touch_up_must_be_gray_and_have_the_results_size() {
    let refused = |png: &[u8]| {
        let finish = Finish { touch_up: Some(png.to_vec().into()), ..PLAIN };
        match render_of(&cut(), &finish) {
            Err(FinishError::TouchUp(error)) => error,
            other => panic!("it was not refused: {other:?}"),
        }
    };
    let small = encoded(GrayImage::new(20, 40));
    let size = TouchUpError::WrongSize { own: (20, 40), result: (40, 20) };
    assert_eq!(refused(&small), size);
    assert_eq!(refused(b"GIF89a"), TouchUpError::NotPng);
    let huge = encoded(GrayImage::new(40_000, 1));
    assert!(matches!(refused(&huge), TouchUpError::WrongSize { own: (40_000, 1), .. }));
    let colored = encoded(RgbImage::from_pixel(40, 20, Rgb([128, 128, 127])));
    assert_eq!(refused(&colored), TouchUpError::NotGray);
    let glass = encoded(RgbaImage::from_pixel(40, 20, Rgba([128, 128, 128, 254])));
    assert_eq!(refused(&glass), TouchUpError::NotGray);
    let whole = touch_up(|x, y| (x * y) as u8);
    assert_eq!(refused(&whole[..whole.len() / 2]), TouchUpError::Damaged);
}

#[test]
fn a_touch_up_may_store_gray_in_other_ways() {
    let canvas = encoded(RgbaImage::from_pixel(40, 20, Rgba([64, 64, 64, 255])));
    let deep = image::ImageBuffer::from_pixel(40, 20, Luma([0x4080_u16]));
    let deep = encoded(image::DynamicImage::ImageLuma16(deep));
    for touch_up in [canvas, deep] {
        let made = rendered(&Finish { touch_up: Some(touch_up), ..PLAIN });
        assert_eq!(pixel(&made, 12, 7), [200, 10, 20, 128]);
    }
}

#[test]
fn a_picture_covers_the_output() {
    // 10 × 10 in three columns; on 40 × 20 its upper and lower quarter are cut off.
    let behind = RgbImage::from_fn(10, 10, |x, y| {
        Rgb([if x < 5 { 0 } else { 200 }, if (3..7).contains(&y) { 90 } else { 0 }, 7])
    });
    let made =
        rendered(&Finish { background: Some(Background::Picture(encoded(behind))), ..PLAIN });
    assert_eq!(made.dimensions(), (40, 20));
    assert_eq!(pixel(&made, 3, 10), [0, 90, 7, 255]);
    assert_eq!(pixel(&made, 36, 10), [200, 90, 7, 255]);
    assert_eq!(pixel(&made, 12, 7), RED.0);
    assert!(pixel(&made, 3, 0)[1] < 45, "half a row of the dark border is left");
    // A translucent background stays translucent.
    let glass = RgbaImage::from_pixel(3, 3, Rgba([50, 60, 70, 80]));
    let made = rendered(&Finish { background: Some(Background::Picture(encoded(glass))), ..PLAIN });
    let mut close = pixel(&made, 0, 0).into_iter().zip([50_u8, 60, 70, 80]);
    assert!(close.all(|(a, b)| a.abs_diff(b) <= 2), "{:?}", pixel(&made, 0, 0));
    let text = Finish { background: Some(Background::Picture(b"text"[..].into())), ..PLAIN };
    let refused = render_of(&cut(), &text).expect_err("it is no picture");
    assert_eq!(
        refused.to_string(),
        "The field background cannot be used: the image cannot be read: it is not a PNG, JPEG or WebP file"
    );
}

#[test]
fn the_blurred_original_is_behind_the_subject() {
    let background = Some(Background::Blur { percent: 5.0 });
    let made = rendered(&Finish { background: background.clone(), ..PLAIN });
    assert_eq!(pixel(&made, 12, 7), RED.0);
    // A blur leaves a linear ramp unchanged, except at the mirrored border.
    let at = pixel(&made, 30, 15);
    assert!(at[0].abs_diff(120) <= 2 && at[1].abs_diff(100) <= 1 && at[3] == 255, "{at:?}");
    let corner = pixel(&made, 39, 19);
    assert!((147..155).contains(&corner[0]), "{corner:?}");
    let crop = Some(Crop { margin: 50.0, aspect: Some((1, 2)) });
    let tall = rendered(&Finish { background, crop, ..PLAIN });
    // The crop begins at (6, -8); rows above the picture mirror those below its border.
    for x in 0..16 {
        let difference = pixel(&tall, x, 3)[0].abs_diff(pixel(&tall, x, 12)[0]);
        assert!(difference <= 1, "{x}: {difference}");
    }
}

#[test]
fn a_blur_shows_no_color_of_transparent_pixels() {
    let hidden = RgbaImage::from_fn(40, 20, |x, y| match cut().get_pixel(x, y).0 {
        [.., 0] => Rgba([255, 0, 255, 0]),
        seen => Rgba(seen),
    });
    let finish = Finish { background: Some(Background::Blur { percent: 5.0 }), ..PLAIN };
    let limits = crate::Limits::default();
    let file = render(&encoded(cut()), Some(&encoded(hidden)), &finish, &limits).expect("rendered");
    let made = image::load_from_memory(&file.bytes).expect("a picture").into_rgba8();
    assert_eq!(pixel(&made, 39, 19), [128, 128, 128, 255]);
}

#[test]
fn the_formats_agree() {
    let finish = |output| Finish {
        background: Some(Background::Gradient(Gradient {
            from: [250, 240, 200],
            to: [40, 90, 160],
            angle: 30.0,
        })),
        shadow: Some(Shadow { opacity: 0.5, blur: 5.0, x: 5.0, y: 5.0 }),
        crop: Some(Crop { margin: 50.0, aspect: None }),
        ..Finish::convert(output)
    };
    let quality = |quality| Quality::new(quality).expect("a quality");
    let png = rendered(&finish(Output::Png));
    let made = |output| rendered(&finish(output));
    assert_eq!(made(Output::WebP(Quality::BEST)), png);
    for output in [Output::Jpeg(quality(95.0)), Output::WebP(quality(95.0))] {
        let lossy = made(output);
        assert_eq!(lossy.dimensions(), png.dimensions());
        let differences = lossy.iter().zip(png.iter()).map(|(a, b)| u64::from(a.abs_diff(*b)));
        let mean = differences.sum::<u64>() as f64 / png.len() as f64;
        assert!(mean < 8.0, "{output:?}: {mean}");
    }
}

#[test]
fn a_jpeg_is_white_where_nothing_is_and_has_the_asked_quality() {
    let jpeg = |quality| {
        let output = Output::Jpeg(Quality::new(quality).expect("a quality"));
        let finish = Finish::convert(output);
        render(&encoded(cut()), None, &finish, &crate::Limits::default()).expect("rendered").bytes
    };
    let fine = image::load_from_memory(&jpeg(95.0)).expect("a picture").into_rgb8();
    assert!(fine.get_pixel(39, 19).0.iter().all(|sample| *sample > 250));
    assert!(jpeg(20.0).len() < jpeg(95.0).len());
    for quality in [0.0, 101.0, 90.5, -1.0, f64::NAN] {
        assert_eq!(Quality::new(quality), None);
    }
}

#[test]
fn backgrounds_look_as_asked_for_whatever_the_profile_of_the_result() {
    use image::{DynamicImage, ImageEncoder, codecs::png::PngEncoder};
    use moxcms::{ColorProfile, Layout, TransformOptions};
    const CRIMSON: [u8; 3] = [226, 0, 26];
    let wide = ColorProfile::new_display_p3();
    let with_profile = |picture: DynamicImage| {
        let mut bytes = Vec::new();
        let mut encoder = PngEncoder::new(&mut bytes);
        encoder.set_icc_profile(wide.encode().expect("it encodes")).expect("PNG takes profiles");
        picture.write_with_encoder(encoder).expect("a PNG");
        Bytes::from(bytes)
    };
    let seen = |color: [u8; 3]| {
        let (screen, options) = (ColorProfile::new_srgb(), TransformOptions::default());
        let transform = wide.create_transform_8bit(Layout::Rgb, &screen, Layout::Rgb, options);
        let mut seen = [0; 3];
        transform.expect("it works").transform(&color, &mut seen).expect("the lengths fit");
        seen
    };
    let corner = |source: &Bytes, background: Background| {
        let finish = Finish { background: Some(background), ..PLAIN };
        let file = render(source, None, &finish, &crate::Limits::default()).expect("rendered");
        let made = image::load_from_memory(&file.bytes).expect("a picture").into_rgb8();
        made.get_pixel(0, 0).0
    };
    let is_near = |one: [u8; 3], other: [u8; 3]| {
        one.iter().zip(other).all(|(one, other)| one.abs_diff(other) <= 2)
    };
    let flat = |color| RgbImage::from_pixel(40, 20, Rgb(color));
    let (narrow_cut, wide_cut) = (encoded(cut()), with_profile(cut().into()));
    let gradient = Gradient { from: CRIMSON, to: CRIMSON, angle: 45.0 };
    for background in [
        Background::Color(CRIMSON),
        Background::Gradient(gradient),
        Background::Picture(encoded(flat(CRIMSON))),
    ] {
        let made = seen(corner(&wide_cut, background.clone()));
        assert!(is_near(made, CRIMSON), "{background:?} is seen as {made:?}");
        assert_eq!(corner(&narrow_cut, background), CRIMSON);
    }
    let stored = [200, 60, 60];
    let wide_picture = Background::Picture(with_profile(flat(stored).into()));
    assert_eq!(corner(&wide_cut, wide_picture.clone()), stored, "both have the same profile");
    let made = corner(&narrow_cut, wide_picture);
    assert!(is_near(made, seen(stored)), "{made:?}");
}

#[test]
fn every_format_keeps_the_profile_that_describes_its_samples() {
    use image::codecs::{jpeg::JpegDecoder, png::PngDecoder, png::PngEncoder, webp::WebPDecoder};
    use image::{DynamicImage, ImageDecoder, ImageEncoder};
    use moxcms::ColorProfile;
    let with_profile = |picture: DynamicImage, profile: &[u8]| {
        let mut bytes = Vec::new();
        let mut encoder = PngEncoder::new(&mut bytes);
        encoder.set_icc_profile(profile.to_vec()).expect("PNG takes profiles");
        picture.write_with_encoder(encoder).expect("a PNG");
        Bytes::from(bytes)
    };
    let quality = Quality::new(90.0).expect("a quality");
    let profile = |source: &Bytes, finish: &Finish| {
        let file = render(source, None, finish, &crate::Limits::default()).expect("rendered");
        let bytes = Cursor::new(&file.bytes[..]);
        match file.content_type {
            "image/png" => PngDecoder::new(bytes).expect("a PNG").icc_profile(),
            "image/jpeg" => JpegDecoder::new(bytes).expect("a JPEG").icc_profile(),
            _ => WebPDecoder::new(bytes).expect("a WebP").icc_profile(),
        }
        .expect("read")
    };
    let of_colors = ColorProfile::new_display_p3().encode().expect("it encodes");
    let of_gray = ColorProfile::new_gray_with_gamma(1.8).encode().expect("it encodes");
    let gray_as_rgb = crate::icc::of_rgb(&of_gray).expect("it has a curve").into_owned();
    let colors = with_profile(cut().into(), &of_colors);
    let gray = with_profile(GrayImage::new(9, 9).into(), &of_gray);
    let background = Some(Background::Color([9; 3]));
    let on_color = Finish { background, ..PLAIN };
    assert_eq!(profile(&colors, &on_color).as_ref(), Some(&of_colors));
    assert_eq!(profile(&gray, &on_color).as_ref(), Some(&gray_as_rgb), "it has colors now");
    for (output, expected) in
        [(Output::Jpeg(quality), &of_gray), (Output::WebP(quality), &gray_as_rgb)]
    {
        assert_eq!(profile(&colors, &Finish::convert(output)).as_ref(), Some(&of_colors));
        assert_eq!(profile(&gray, &Finish::convert(output)).as_ref(), Some(expected));
    }
}
