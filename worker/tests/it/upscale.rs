//! Complete runs of upscale, most of them with a stub net whose correct output is known.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use image::{DynamicImage, ExtendedColorType, GrayImage, ImageEncoder, RgbImage, Rgba, RgbaImage};
use ndarray::Array4;
use retouch_catalog::{Count, CountUnit, Factor};
use retouch_inference::manifest::{
    Element, Enlargement, Layout, NetOutput, Precision, TileInput, Tiling, TilingMode, Upscale,
};
use retouch_inference::output::{Extremes, Output};
use retouch_inference::registry::{Announcement, Inference};
use retouch_inference::session::SessionError;
use retouch_pixels::Limits;
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::tools::upscale::{Magnification, Net, Progress, Upscaler, upscale};
use retouch_worker::tools::{Made, Settings, ToolError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{load, photo, picture_file, repository};

/// Behaves like a model: blurs within `radius`, with zero padding at the border, then repeats every pixel.
struct Stub {
    contract: Upscale,
    radius: usize,
    /// The longest side, in input pixels, that does not run out of memory.
    max_side: usize,
    delay: Duration,
    /// Added to every second output.
    brightening: f32,
    few_shapes: bool,
    runs: AtomicUsize,
    refused: AtomicUsize,
    /// The shapes that it was given: rows and columns.
    shapes: Mutex<BTreeSet<(usize, usize)>>,
}

impl Stub {
    fn new(scale: u32, radius: u32) -> Self {
        let tiling = Tiling {
            mode: TilingMode::Exact,
            padding: radius,
            blend: 0,
            largest: 64,
            smallest: 8,
            multiple_of: 1,
            memory_bytes_per_pixel: 1,
        };
        let input = TileInput {
            name: "input".to_owned(),
            layout: Layout::Nchw,
            element: Element::F32,
            width: None,
            height: None,
            divide_by: 255.0,
            mean: [0.0; 3],
            std: [1.0; 3],
        };
        let output = NetOutput::plain("output");
        let upscale = Enlargement { scale, resample: true };
        let contract = Upscale { precision: Precision::F32, input, output, upscale, tiling };
        Self {
            contract,
            radius: radius as usize,
            max_side: usize::MAX,
            delay: Duration::ZERO,
            brightening: 0.0,
            few_shapes: false,
            shapes: Mutex::default(),
            runs: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    const fn tiles_of(mut self, largest: u32) -> Self {
        self.contract.tiling.largest = largest;
        self
    }
}

impl Net for Stub {
    fn contract(&self) -> &Upscale {
        &self.contract
    }

    fn has_few_shapes(&self) -> bool {
        self.few_shapes
    }

    async fn enlarge(
        &self,
        _: Option<Announcement>,
        tile: Array4<u8>,
    ) -> Result<Inference, SessionError> {
        tokio::time::sleep(self.delay).await;
        let brightening = (self.runs.fetch_add(1, Ordering::Relaxed) % 2) as f32 * self.brightening;
        let (_, height, width, channels) = tile.dim();
        self.shapes.lock().expect("one").insert((height, width));
        let TileInput { width: only_width, height: only_height, .. } = self.contract.input;
        for (side, only) in [(width, only_width), (height, only_height)] {
            assert!(only.is_none_or(|only| only as usize == side), "a tile of {width} × {height}");
        }
        if width.max(height) > self.max_side {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(SessionError::OutOfMemory("the stub's limit".to_owned()));
        }
        let radius = self.radius;
        let area = ((2 * radius + 1) * (2 * radius + 1)) as f32;
        let scale = self.contract.upscale.scale as usize;
        let sums = sums_around(&tile, radius);
        let mut samples = Vec::new();
        for sums in sums.chunks_exact(width * channels) {
            let soft = |sum: &u32| {
                let value = *sum as f32 / area + brightening * 255.0;
                value.clamp(0.0, 255.0).round() as u8
            };
            let row: Vec<u8> = sums.iter().map(soft).collect();
            let row: Vec<u8> =
                row.chunks_exact(channels).flat_map(|pixel| pixel.repeat(scale)).collect();
            samples.extend(row.repeat(scale));
        }
        let shape = (1, height * scale, width * scale, channels);
        let samples = Array4::from_shape_vec(shape, samples).expect("each sample was repeated");
        let output = Output::Pictures {
            samples: samples.into(),
            extremes: vec![Some(Extremes { least: 0.0, largest: 1.0 })],
        };
        Ok(Inference { output, waited: Duration::ZERO, ran: Duration::from_millis(1) })
    }
}

/// Returns the sum of the samples at most `radius` rows and columns away, for each sample of `[1, row, column, channel]`.
/// Uses a summed-area table, because tests are not optimized.
fn sums_around(tile: &Array4<u8>, radius: usize) -> Vec<u32> {
    let (_, height, width, channels) = tile.dim();
    let stride = (width + 1) * channels;
    // The sum of everything above and to the left.
    let mut before = vec![0_u32; stride * (height + 1)];
    for (at, sample) in tile.iter().enumerate() {
        let at = (at / (width * channels) + 1) * stride + at % (width * channels) + channels;
        let (above, left) = (before[at - stride], before[at - channels]);
        before[at] = above + left + u32::from(*sample) - before[at - stride - channels];
    }
    let mut sums = Vec::with_capacity(tile.len());
    for y in 0..height {
        let top = y.saturating_sub(radius) * stride;
        let bottom = (y + radius + 1).min(height) * stride;
        for at in 0..width * channels {
            let (x, channel) = (at / channels, at % channels);
            let left = x.saturating_sub(radius) * channels + channel;
            let right = (x + radius + 1).min(width) * channels + channel;
            sums.push(
                before[bottom + right] + before[top + left]
                    - before[top + right]
                    - before[bottom + left],
            );
        }
    }
    sums
}

fn settings() -> Settings {
    Settings { limits: Limits::default(), tile_memory_bytes: u64::MAX }
}

async fn run(
    net: &impl Net,
    factor: impl Into<Magnification>,
    input: Vec<u8>,
    settings: Settings,
    progress: impl Fn(Progress) + Sync,
) -> Result<(Made, Vec<u8>), ToolError> {
    let pixels = PixelPool::new(2).expect("threads start");
    let cancel = CancellationToken::new();
    let (out, mut parts) = mpsc::channel::<Bytes>(1);
    let making = upscale(input.into(), factor, net, &pixels, &settings, &cancel, progress, out);
    let collecting = async {
        let mut png = Vec::new();
        while let Some(part) = parts.recv().await {
            png.extend_from_slice(&part);
        }
        png
    };
    let (made, png) = tokio::join!(making, collecting);
    made.map(|made| (made, png))
}

async fn enlarged(
    net: &impl Net,
    factor: impl Into<Magnification>,
    input: Vec<u8>,
) -> DynamicImage {
    let (made, png) = run(net, factor, input, settings(), |_| {}).await.expect("it runs");
    let image = image::load_from_memory(&png).expect("the result is a PNG");
    assert_eq!((image.width(), image.height()), made.size);
    image
}

fn png(image: &DynamicImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    image.write_with_encoder(encoder).expect("it encodes");
    bytes
}

/// Returns random pixels, so that no two tiles are alike.
fn noise(width: u32, height: u32) -> RgbaImage {
    let mut state = 1_u32;
    RgbaImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [r, g, b, a] = state.to_be_bytes();
        // A third each is transparent, opaque and translucent.
        let alpha = if a < 85 {
            0
        } else if a < 170 {
            255
        } else {
            g
        };
        Rgba([r, g, b.wrapping_mul(17), alpha])
    })
}

#[tokio::test]
async fn tiled_and_whole_results_are_equal_byte_for_byte() {
    let sizes = [(1, 1), (2, 5), (63, 64), (65, 130), (200, 7), (7, 200), (97, 61)];
    for (width, height) in sizes {
        let rgba = DynamicImage::ImageRgba8(noise(width, height));
        for image in [rgba.to_rgb8().into(), rgba.to_luma8().into(), rgba.clone()] {
            let input = png(&image);
            let resampled = [(3, Factor::X2), (3, Factor::X4), (8, Factor::X4)];
            let direct = [(4, Factor::X4), (4, Factor::X2), (2, Factor::X2)];
            for (scale, factor) in [direct, resampled].concat() {
                let whole =
                    enlarged(&Stub::new(scale, 3).tiles_of(4096), factor, input.clone()).await;
                for side in [16, 37, 64] {
                    let net = Stub::new(scale, 3).tiles_of(side);
                    let tiled = enlarged(&net, factor, input.clone()).await;
                    assert!(
                        tiled == whole,
                        "{width} × {height}, {:?}, {}X, tiles of {side}",
                        image.color(),
                        factor.get()
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn tiles_of_one_size_give_the_same_picture() {
    let rgba = DynamicImage::ImageRgba8(noise(97, 61));
    for image in [rgba.to_rgb8().into(), rgba] {
        let input = png(&image);
        for (scale, factor) in [(4, Factor::X4), (4, Factor::X2), (3, Factor::X4)] {
            let whole = enlarged(&Stub::new(scale, 3).tiles_of(4096), factor, input.clone()).await;
            for (mode, blend) in [(TilingMode::Exact, 0), (TilingMode::Blend, 2)] {
                // The stub refuses every other size.
                let mut net = Stub::new(scale, 3);
                net.contract.input.width = Some(32);
                net.contract.input.height = Some(40);
                net.contract.tiling = Tiling { mode, blend, ..net.contract.tiling };
                let tiled = enlarged(&net, factor, input.clone()).await;
                assert!(tiled == whole, "scale {scale}, {}X, {mode:?}", factor.get());
            }
        }
    }
}

#[tokio::test]
async fn too_little_padding_changes_the_result() {
    // Proves that the previous test can fail.
    let input = png(&DynamicImage::ImageRgb8(DynamicImage::from(noise(90, 90)).to_rgb8()));
    let mut net = Stub::new(4, 3).tiles_of(32);
    net.contract.tiling.padding = 2;
    let whole = enlarged(&Stub::new(4, 3).tiles_of(4096), Factor::X4, input.clone()).await;
    assert!(enlarged(&net, Factor::X4, input).await != whole);
}

#[tokio::test]
async fn the_border_shows_no_frame() {
    let input = png(&DynamicImage::ImageRgb8(RgbImage::from_pixel(50, 40, image::Rgb([200; 3]))));
    let result = enlarged(&Stub::new(4, 3), Factor::X4, input).await.into_rgb8();
    assert!(result.pixels().all(|pixel| pixel.0 == [200; 3]), "a flat picture stays flat");
}

#[tokio::test]
async fn running_out_of_memory_halves_the_tiles() {
    let image = DynamicImage::ImageRgb8(DynamicImage::from(noise(150, 90)).to_rgb8());
    let whole = enlarged(&Stub::new(4, 2).tiles_of(4096), Factor::X4, png(&image)).await;
    let mut net = Stub::new(4, 2);
    net.max_side = 35;
    assert!(enlarged(&net, Factor::X4, png(&image)).await == whole);
    // 64 and 32 do not fit; 16 with its padding does.
    assert!((2..=6).contains(&net.refused.load(Ordering::Relaxed)), "{:?}", net.refused);
    let counted = Mutex::new(Vec::new());
    let count = |at: Progress| counted.lock().expect("one").push(at.tiles);
    run(&net, Factor::X4, png(&image), settings(), count).await.expect("it runs");
    let counted = counted.into_inner().expect("one");
    assert!(counted.iter().all(|tiles| tiles.done <= tiles.total), "{counted:?}");
    let (first, last) = (counted[0], counted[counted.len() - 1]);
    assert!(last.done == last.total && last.total > first.total, "{first:?}, then {last:?}");

    net.max_side = 7;
    let refused = run(&net, Factor::X4, png(&image), settings(), |_| {}).await;
    assert!(
        matches!(refused, Err(ToolError::OutOfMemory(_))),
        "even the smallest tile is too large"
    );
}

#[tokio::test]
async fn pictures_of_all_sizes_share_few_shapes_and_come_out_the_same() {
    for (mode, blend) in [(TilingMode::Exact, 0), (TilingMode::Blend, 2)] {
        let mut net = Stub { few_shapes: true, ..Stub::new(4, 3) };
        net.contract.tiling = Tiling { mode, blend, multiple_of: 4, ..net.contract.tiling };
        for (width, height) in [(1, 1), (64, 63), (65, 130), (200, 7), (7, 200), (97, 61), (30, 9)]
        {
            let input = png(&DynamicImage::ImageRgba8(noise(width, height)));
            let whole = enlarged(&Stub::new(4, 3).tiles_of(4096), Factor::X4, input.clone()).await;
            assert!(enlarged(&net, Factor::X4, input).await == whole, "{width} × {height}");
        }
        // 80 pixels, padding included, are a multiple of 4.
        let shapes: Vec<_> = net.shapes.into_inner().expect("one").into_iter().collect();
        assert_eq!(shapes, [(40, 40), (80, 80)], "{mode:?}");
    }
}

#[tokio::test]
async fn running_out_of_memory_leads_to_the_next_of_few_shapes() {
    let image = DynamicImage::ImageRgb8(DynamicImage::from(noise(150, 90)).to_rgb8());
    let whole = enlarged(&Stub::new(4, 2).tiles_of(4096), Factor::X4, png(&image)).await;
    let net = Stub { few_shapes: true, max_side: 40, ..Stub::new(4, 2) };
    assert!(enlarged(&net, Factor::X4, png(&image)).await == whole);
    let shapes: Vec<_> = net.shapes.into_inner().expect("one").into_iter().collect();
    assert_eq!(shapes, [(39, 39), (78, 78)]);
}

#[tokio::test]
async fn tiles_are_no_larger_than_memory_allows() {
    let image = DynamicImage::ImageRgb8(DynamicImage::from(noise(100, 100)).to_rgb8());
    let mut net = Stub::new(4, 2);
    net.contract.tiling.memory_bytes_per_pixel = 1000;
    net.max_side = 30;
    let settings = Settings { tile_memory_bytes: 30 * 30 * 1000, ..settings() };
    run(&net, Factor::X4, png(&image), settings, |_| {}).await.expect("it fits");
    assert_eq!(net.refused.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn overlapping_tiles_fade_into_each_other() {
    // Simulates a model that sees farther than any padding: every second tile is brighter.
    let flat = RgbImage::from_pixel(150, 130, image::Rgb([100; 3]));
    let input = png(&DynamicImage::ImageRgb8(flat));
    let uneven = |mode, blend| {
        // The brightness of an enlarged tile is corrected; that of a cleaned one is not.
        let mut net = Stub::new(1, 0);
        net.brightening = 8.0 / 255.0;
        net.contract.tiling = Tiling { mode, blend, smallest: 32, ..net.contract.tiling };
        net
    };
    let hard = enlarged(&uneven(TilingMode::Exact, 0), Magnification::Same, input.clone()).await;
    let soft = enlarged(&uneven(TilingMode::Blend, 16), Magnification::Same, input).await;
    let (hard, soft) = (hard.into_rgb8(), soft.into_rgb8());
    assert_eq!((largest_step(&hard), soft.pixels().map(|pixel| pixel[0]).max()), (8, Some(108)));
    assert!(largest_step(&soft) <= 1, "8 levels fade over 16 pixels: {}", largest_step(&soft));
}

/// Returns the largest difference between neighboring pixels.
fn largest_step(image: &RgbImage) -> u8 {
    let at = |x: u32, y: u32| image.get_pixel(x, y)[0];
    let pixels = (1..image.height()).flat_map(|y| (1..image.width()).map(move |x| (x, y)));
    let steps = |(x, y)| at(x, y).abs_diff(at(x - 1, y)).max(at(x, y).abs_diff(at(x, y - 1)));
    pixels.map(steps).max().unwrap_or(0)
}

#[tokio::test]
async fn a_logo_keeps_its_edge_color_and_its_full_and_zero_alpha() {
    // A red disc on transparent black, as most programs write it.
    let logo = RgbaImage::from_fn(80, 80, |x, y| {
        let distance = f64::from((x as i32 - 40).pow(2) + (y as i32 - 40).pow(2)).sqrt();
        match ((30.5 - distance).clamp(0.0, 1.0) * 255.0) as u8 {
            0 => Rgba([0, 0, 0, 0]),
            alpha => Rgba([230, 20, 30, alpha]),
        }
    });
    for factor in [Factor::X2, Factor::X4] {
        let result =
            enlarged(&Stub::new(4, 2).tiles_of(32), factor, png(&logo.clone().into())).await;
        let result = result.into_rgba8();
        for pixel in result.pixels().filter(|pixel| pixel[3] > 0) {
            assert!(pixel[0] >= 225 && pixel[1] <= 25 && pixel[2] <= 35, "a fringe: {pixel:?}");
        }
        let scale = u32::from(factor.get());
        assert_eq!(result.get_pixel(40 * scale, 40 * scale)[3], 255);
        assert_eq!(result.get_pixel(scale, scale).0, [0; 4]);
    }
}

#[tokio::test]
async fn gray_and_alpha_are_kept() {
    let rgba = DynamicImage::ImageRgba8(noise(40, 30));
    let sixteen = DynamicImage::ImageLumaA16(rgba.to_luma_alpha16());
    for (image, expected) in [
        (DynamicImage::ImageLuma8(rgba.to_luma8()), image::ColorType::L8),
        (DynamicImage::ImageLumaA8(rgba.to_luma_alpha8()), image::ColorType::La8),
        (sixteen, image::ColorType::La8),
        (DynamicImage::ImageRgb16(rgba.to_rgb16()), image::ColorType::Rgb8),
        (rgba.clone(), image::ColorType::Rgba8),
    ] {
        let result = enlarged(&Stub::new(4, 1), Factor::X2, png(&image)).await;
        assert_eq!(result.color(), expected, "from {:?}", image.color());
        assert_eq!((result.width(), result.height()), (80, 60));
    }
    // Fully opaque alpha is dropped.
    let opaque = DynamicImage::ImageRgba8(RgbaImage::from_pixel(9, 9, Rgba([1, 2, 3, 255])));
    let result = enlarged(&Stub::new(4, 1), Factor::X2, png(&opaque)).await;
    assert_eq!(result.color(), image::ColorType::Rgb8);
}

#[tokio::test]
async fn palettes_and_cmyk_become_rgb() {
    let palette = enlarged(&Stub::new(4, 1), Factor::X4, picture_file("palette.png")).await;
    assert!(matches!(palette.color(), image::ColorType::Rgba8 | image::ColorType::Rgb8));
    let cmyk = enlarged(&Stub::new(4, 1), Factor::X4, picture_file("cmyk.jpg")).await;
    assert_eq!(cmyk.color(), image::ColorType::Rgb8);
}

/// Returns a minimal ICC profile without tags.
fn profile(space: [u8; 4]) -> Vec<u8> {
    let mut profile = vec![0; 132];
    profile[..4].copy_from_slice(&132_u32.to_be_bytes());
    profile[16..20].copy_from_slice(&space);
    profile[36..40].copy_from_slice(b"acsp");
    profile
}

#[tokio::test]
async fn a_valid_icc_profile_is_kept_and_a_broken_one_dropped() {
    let gray = GrayImage::from_pixel(8, 8, image::Luma([90]));
    let rgb = RgbImage::from_pixel(8, 8, image::Rgb([90, 10, 10]));
    let mut broken = profile(*b"RGB ");
    broken[131] = 9; // nine tags, but none follows
    for (samples, kind, embedded, kept) in [
        (rgb.as_raw(), ExtendedColorType::Rgb8, profile(*b"RGB "), true),
        (gray.as_raw(), ExtendedColorType::L8, profile(*b"GRAY"), true),
        (gray.as_raw(), ExtendedColorType::L8, profile(*b"RGB "), false),
        (rgb.as_raw(), ExtendedColorType::Rgb8, broken, false),
    ] {
        let mut input = Vec::new();
        let mut encoder = image::codecs::png::PngEncoder::new(&mut input);
        encoder.set_icc_profile(embedded.clone()).expect("PNG takes profiles");
        encoder.write_image(samples, 8, 8, kind).expect("it encodes");
        let (_, png) =
            run(&Stub::new(4, 1), Factor::X2, input, settings(), |_| {}).await.expect("it runs");
        let decoder = image::codecs::png::PngDecoder::new(std::io::Cursor::new(png));
        let found =
            image::ImageDecoder::icc_profile(&mut decoder.expect("a PNG")).expect("it reads");
        assert_eq!(found, kept.then_some(embedded));
    }
}

#[tokio::test]
async fn pictures_over_the_limit_are_refused_and_strips_work() {
    let strip = DynamicImage::ImageRgb8(RgbImage::from_pixel(10_000, 3, image::Rgb([7, 8, 9])));
    let net = Stub::new(4, 1);
    let refused = run(&net, Factor::X4, png(&strip), settings(), |_| {}).await;
    let error = refused.expect_err("10,000 is more than 6,000").to_string();
    assert_eq!(error, "the image is 10000 × 3 pixels; the limit is 6000 per side");
    let limits = Limits { max_dimension: 10_000 };
    let (made, _) = run(&net, Factor::X2, png(&strip), Settings { limits, ..settings() }, |_| {})
        .await
        .expect("it fits");
    assert_eq!(made.size, (20_000, 6));
    let thumbnail = image::load_from_memory(&made.copies.thumbnail).expect("a PNG");
    assert_eq!((thumbnail.width(), thumbnail.height()), (512, 1));
}

#[tokio::test]
async fn progress_grows_to_the_end_and_estimates_the_time_left() {
    let image = DynamicImage::ImageRgb8(DynamicImage::from(noise(160, 160)).to_rgb8());
    let reports = Mutex::new(Vec::new());
    let mut net = Stub::new(4, 1).tiles_of(40);
    net.delay = Duration::from_millis(20);
    run(&net, Factor::X4, png(&image), settings(), |at| reports.lock().expect("one").push(at))
        .await
        .expect("it runs");
    let reports = reports.into_inner().expect("one");
    assert_eq!(reports.len(), 1 + 16, "once before the first tile, then after each");
    let tiles = |done| Count { unit: CountUnit::Tiles, done, total: 16 };
    assert_eq!(reports[0], Progress { fraction: 0.0, tiles: tiles(0), left: None });
    assert!((0..).zip(&reports).all(|(done, at)| at.tiles == tiles(done)));
    assert!(reports.windows(2).all(|pair| pair[0].fraction < pair[1].fraction));
    assert!(reports[16].fraction > 0.9999);
    let left = |at: usize| reports[at].left.expect("it is measured");
    assert!(left(8) < left(2), "the time left falls: {:?}, then {:?}", left(2), left(8));
    assert_eq!(left(16), Duration::ZERO);
}

#[tokio::test]
async fn a_canceled_run_ends_between_tiles() {
    let image = DynamicImage::ImageRgb8(DynamicImage::from(noise(160, 160)).to_rgb8());
    let mut net = Stub::new(4, 1).tiles_of(40);
    net.delay = Duration::from_millis(30);
    let pixels = PixelPool::new(2).expect("threads start");
    let cancel = CancellationToken::new();
    let (out, _parts) = mpsc::channel(64);
    let progress = |at: Progress| {
        if at.fraction > 0.2 {
            cancel.cancel();
        }
    };
    let input = png(&image).into();
    let made = upscale(input, Factor::X4, &net, &pixels, &settings(), &cancel, progress, out).await;
    assert!(matches!(made, Err(ToolError::Canceled)));
    assert!(net.runs.load(Ordering::Relaxed) < 8, "{:?} of 16 tiles ran", net.runs);
}

#[tokio::test]
async fn a_run_ends_when_its_receiver_is_dropped() {
    let image = DynamicImage::ImageRgb8(DynamicImage::from(noise(160, 160)).to_rgb8());
    let net = Stub::new(4, 1).tiles_of(16);
    let pixels = PixelPool::new(2).expect("threads start");
    let (out, parts) = mpsc::channel(1);
    drop(parts);
    let cancel = CancellationToken::new();
    let input = png(&image).into();
    let made = upscale(input, Factor::X4, &net, &pixels, &settings(), &cancel, |_| {}, out).await;
    assert!(matches!(made, Err(ToolError::Canceled)));
}

async fn real(name: &str) -> Upscaler {
    let folder = repository().join("models").join(name);
    assert!(
        folder.join(format!("{name}.onnx")).is_file(),
        "run `scripts/models fetch {name}` first"
    );
    Upscaler::new(load(&folder).await.expect("it loads")).expect("it is an upscaler")
}

/// The padding in the manifest is sufficient: the compact net sees no farther than 18 pixels.
#[tokio::test]
async fn the_compact_net_tiles_exactly() {
    let net = real("realesr-animevideov3-x4").await;
    let photo = image::load_from_memory(&photo("astronaut.jpg")).expect("a photo");
    let photo = photo.crop_imm(180, 60, 75, 61).into_rgb8().into();
    let pixels = PixelPool::new(2).expect("threads start");
    let mut results = Vec::new();
    for memory in [u64::MAX, 90 * 90 * u64::from(net.contract().tiling.memory_bytes_per_pixel)] {
        let settings = Settings { tile_memory_bytes: memory, ..settings() };
        let cancel = CancellationToken::new();
        let (out, mut parts) = mpsc::channel::<Bytes>(64);
        let tiles = AtomicUsize::new(0);
        let count = |_| {
            tiles.fetch_add(1, Ordering::Relaxed);
        };
        let input = png(&photo).into();
        upscale(input, Factor::X4, &net, &pixels, &settings, &cancel, count, out)
            .await
            .expect("it runs");
        let mut png = Vec::new();
        while let Some(part) = parts.recv().await {
            png.extend_from_slice(&part);
        }
        results.push((tiles.into_inner(), image::load_from_memory(&png).expect("a PNG")));
    }
    let [(one, whole), (several, tiled)] = &results[..] else { panic!("two runs") };
    assert!((*one, *several) == (2, 5), "one tile, then four: {one}, {several}");
    assert!(tiled == whole, "every byte is the same");
    // It sharpens: the mean absolute Laplacian is well above that of a plain enlargement.
    let plain = photo.resize_exact(300, 244, image::imageops::FilterType::CatmullRom);
    let ratio = laplacian(&whole.to_luma8()) / laplacian(&plain.to_luma8());
    assert!(ratio > 1.5, "{ratio}");
    // It is the same picture: scaled back it matches the input.
    let small = whole.resize_exact(75, 61, image::imageops::FilterType::Triangle).into_rgb8();
    let error: f64 = small
        .as_raw()
        .iter()
        .zip(photo.as_bytes())
        .map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2))
        .sum::<f64>()
        / small.as_raw().len() as f64;
    let psnr = 10.0 * (255.0 * 255.0 / error).log10();
    assert!(psnr > 28.0, "{psnr} dB");
}

fn laplacian(image: &GrayImage) -> f64 {
    let at = |x: u32, y: u32| f64::from(image.get_pixel(x, y)[0]);
    let (width, height) = image.dimensions();
    let mut sum = 0.0;
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
            sum += (around - 4.0 * at(x, y)).abs();
        }
    }
    sum / f64::from((width - 2) * (height - 2))
}
