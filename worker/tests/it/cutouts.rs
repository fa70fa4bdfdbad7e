//! Complete runs of remove background.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use image::RgbaImage;
use retouch_inference::registry::ModelHandle;
use retouch_pixels::Limits;
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::tools::remove_background::remove_background;
use retouch_worker::tools::stage::Stage;
use retouch_worker::tools::{Made, ToolError};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{fixture, load, photo, tiny, u2netp};
use crate::onnx::Model;

async fn cut(model: &ModelHandle, input: Vec<u8>) -> Result<(Bytes, Made), ToolError> {
    let pixels = PixelPool::new(2).expect("threads start");
    let cancel = CancellationToken::new();
    remove_background(input.into(), model, &pixels, &Limits::default(), &cancel, |_| {}).await
}

fn decoded(png: &Bytes) -> RgbaImage {
    image::load_from_memory(png).expect("the result is a PNG").into_rgba8()
}

#[tokio::test]
async fn alpha_matches_the_reference_implementation_within_one_level() {
    let model = u2netp().await;
    // The coverage was measured with the reference implementation on the same photos.
    for (file, name, coverage) in [
        ("astronaut.jpg", "astronaut", 0.554),
        ("chelsea.png", "chelsea", 0.656),
        ("coffee.jpg", "coffee", 0.476),
    ] {
        let (png, _) = cut(&model, photo(file)).await.expect("it is cut");
        let result = decoded(&png);
        let expected = image::load_from_memory(&fixture(&format!("reference/{name}-u2netp.png")));
        let expected = expected.expect("the reference decodes").into_luma8();
        assert_eq!(result.dimensions(), expected.dimensions());
        let count = f64::from(result.width() * result.height());
        let pairs = result.pixels().zip(expected.pixels());
        let error: u32 = pairs.map(|(a, b)| u32::from(a[3].abs_diff(b[0]))).sum();
        let error = f64::from(error) / count;
        assert!(error <= 1.0, "{file}: alpha is off by {error:.3} levels on average");
        let actual = result.pixels().map(|pixel| f64::from(pixel[3]) / 255.0).sum::<f64>() / count;
        assert!((actual - coverage).abs() <= 0.01, "{file}: coverage is {actual:.3}");
    }
}

#[tokio::test]
async fn a_picture_of_low_contrast_is_cut_out_like_the_original() {
    let model = u2netp().await;
    let original = image::load_from_memory(&photo("chelsea.png")).unwrap().into_rgb8();
    for contrast in [0.06, 0.25] {
        let mut faint = original.clone();
        for sample in faint.iter_mut() {
            *sample = ((f32::from(*sample) - 128.0) * contrast + 128.0).round() as u8;
        }
        let mut png = std::io::Cursor::new(Vec::new());
        faint.write_to(&mut png, image::ImageFormat::Png).unwrap();
        let (png, _) = cut(&model, png.into_inner()).await.expect("it is cut");
        let result = decoded(&png);
        let sum: f64 = result.pixels().map(|pixel| f64::from(pixel[3]) / 255.0).sum();
        let coverage = sum / f64::from(result.width() * result.height());
        assert!((0.55..0.75).contains(&coverage), "contrast {contrast}: coverage {coverage:.3}");
        let opaque = result.enumerate_pixels().filter(|(.., pixel)| pixel[3] == 255);
        for (x, y, pixel) in opaque {
            assert_eq!(pixel.0[..3], faint.get_pixel(x, y).0, "its own colors are kept");
        }
    }
}

#[tokio::test]
async fn a_result_reports_its_size_model_and_times() {
    let model = tiny().await;
    let (png, made) = cut(&model, photo("coffee.jpg")).await.expect("it is cut");
    assert_eq!(made.size, (600, 400));
    assert_eq!(decoded(&png).dimensions(), (600, 400));
    assert_eq!(decoded(&made.copies.thumbnail).dimensions(), (512, 341));
    assert!(Stage::ALL.iter().all(|stage| made.stages.get(*stage) > Duration::ZERO));
}

/// A net whose subject is whatever is brighter than the rest.
async fn brightness() -> ModelHandle {
    let models = TempDir::new().expect("a folder");
    load(&Model::new(1.0).write(models.path(), "brightness")).await.expect("it loads")
}

#[tokio::test]
async fn odd_sizes_are_kept() {
    let model = brightness().await;
    for (width, height) in [(2, 1), (1, 5000), (333, 777)] {
        let mut png = std::io::Cursor::new(Vec::new());
        let picture = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([x as u8, (y / 7) as u8, 90])
        });
        picture.write_to(&mut png, image::ImageFormat::Png).expect("it encodes");
        let (png, _) = cut(&model, png.into_inner()).await.expect("it is cut");
        assert_eq!(decoded(&png).dimensions(), (width, height));
    }
}

/// Returns the golden cat of u2netp as a cutout, with this color where it is transparent.
fn cat(hidden: [u8; 3]) -> RgbaImage {
    let golden = |name: &str| {
        let path = crate::repository().join("models/u2netp/golden").join(name);
        image::load_from_memory(&crate::read(&path)).expect("it decodes")
    };
    let (mut cat, alpha) = (golden("cat.png").into_rgba8(), golden("cat-alpha.png").into_luma8());
    for (pixel, alpha) in cat.pixels_mut().zip(alpha.pixels()) {
        pixel[3] = alpha[0];
        if alpha[0] == 0 {
            pixel.0[..3].copy_from_slice(&hidden);
        }
    }
    cat
}

fn png(picture: &RgbaImage) -> Vec<u8> {
    let mut png = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut png, image::ImageFormat::Png).expect("it encodes");
    png.into_inner()
}

#[tokio::test]
async fn invisible_colors_do_not_decide_what_the_subject_is() {
    let model = u2netp().await;
    let (on_black, _) = cut(&model, png(&cat([0; 3]))).await.expect("it is cut");
    let (on_pink, _) = cut(&model, png(&cat([250, 90, 180]))).await.expect("it is cut");
    assert!(on_black == on_pink, "both look the same");
    let sum = |cat: &RgbaImage| cat.pixels().map(|pixel| f64::from(pixel[3])).sum::<f64>();
    let kept = sum(&decoded(&on_black)) / sum(&cat([0; 3]));
    assert!(kept > 0.75, "{:.1} % of the cat are left", kept * 100.0);
}

#[tokio::test]
async fn a_soft_edge_that_the_picture_already_has_keeps_its_color() {
    let model = u2netp().await;
    // A disc of one color, on hidden black.
    let disc = RgbaImage::from_fn(256, 256, |x, y| {
        let distance = (x as f32 - 128.0).hypot(y as f32 - 128.0);
        match ((80.0 - distance) / 16.0 + 0.5).clamp(0.0, 1.0) {
            0.0 => image::Rgba([0; 4]),
            alpha => image::Rgba([120, 80, 60, (alpha * 255.0).round() as u8]),
        }
    });
    let (made, _) = cut(&model, png(&disc)).await.expect("it is cut");
    let made = decoded(&made);
    let visible = made.pixels().filter(|pixel| pixel[3] > 0);
    let worst = visible.flat_map(|pixel| {
        pixel.0[..3].iter().zip([120_u8, 80, 60]).map(|(made, color)| made.abs_diff(color))
    });
    let worst = worst.max().expect("the disc is found");
    assert!(worst <= 1, "a color is {worst} levels off");
}

#[tokio::test]
async fn a_picture_without_a_subject_gives_no_empty_cutout() {
    let model = brightness().await;
    let mut picture = RgbaImage::from_pixel(300, 200, image::Rgba([200, 220, 190, 255]));
    assert_eq!(cut(&model, png(&picture)).await.map(drop), Err(ToolError::NoSubject));
    for pixel in picture.pixels_mut().take(60 * 300) {
        *pixel = image::Rgba([0, 0, 0, 255]);
    }
    cut(&model, png(&picture)).await.expect("its lower part is cut out");
    // The net sees what is transparent as gray, and takes it for the subject.
    for pixel in picture.pixels_mut().skip(60 * 300) {
        *pixel = image::Rgba([200, 220, 190, 0]);
    }
    assert_eq!(cut(&model, png(&picture)).await.map(drop), Err(ToolError::NoSubject));
}

#[tokio::test]
async fn stages_are_announced_in_order() {
    let model = tiny().await;
    let pixels = PixelPool::new(1).expect("threads start");
    let seen = Mutex::new(Vec::new());
    let record = |stage| seen.lock().expect("no panic").push(stage);
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let input = photo("coffee.jpg").into();
    let result = remove_background(input, &model, &pixels, &limits, &cancel, record).await;
    result.expect("it is cut");
    assert_eq!(*seen.lock().expect("no panic"), Stage::ALL);
}

#[tokio::test]
async fn a_canceled_run_ends_between_stages() {
    let model = tiny().await;
    let pixels = PixelPool::new(1).expect("threads start");
    let cancel = CancellationToken::new();
    let cancel_at_model = |stage| {
        if stage == Stage::Infer {
            cancel.cancel();
        }
    };
    let input = photo("coffee.jpg").into();
    let limits = Limits::default();
    let result = remove_background(input, &model, &pixels, &limits, &cancel, cancel_at_model).await;
    let error = result.expect_err("it was canceled");
    assert_eq!((error.code(), error.is_retryable()), ("cancelled", false));
}

#[tokio::test]
async fn a_panic_on_a_pixel_thread_is_an_error() {
    let pixels = PixelPool::new(1).expect("threads start");
    let failed = pixels.run(|| panic!("for the test")).await;
    assert_eq!(failed, Err::<(), _>(ToolError::Internal("for the test".to_owned())));
    assert_eq!(pixels.run(|| 7).await, Ok(7));
}
