//! The contracts that a manifest may state for a net: the result of a tiny net of each equals the picture that
//! `models/tiny/make.py` computed. Then the contracts that are refused, with the field to change.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bytes::Bytes;
use image::{DynamicImage, RgbImage};
use retouch_catalog::Factor;
use retouch_inference::manifest::{Manifest, Task};
use retouch_inference::session::{GpuSettings, Runtime, RuntimeSettings};
use retouch_pixels::Limits;
use retouch_pixels::decode::decode;
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::tools::Settings;
use retouch_worker::tools::upscale::{Magnification, Upscaler, upscale};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{altered, load, magic_fix, read, repository, settings};

fn folder(name: &str) -> PathBuf {
    repository().join("models/tiny").join(name)
}

fn picture(name: &str, file: &str) -> DynamicImage {
    image::load_from_memory(&read(&folder(name).join(file))).unwrap()
}

/// Returns the largest difference of two pictures of the same size, in levels.
fn difference(made: &DynamicImage, expected: &DynamicImage) -> u8 {
    assert_eq!((made.width(), made.height()), (expected.width(), expected.height()));
    let (made, expected) = (made.to_rgb8(), expected.to_rgb8());
    made.iter().zip(expected.iter()).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
}

/// Returns the alpha of a model's golden picture, as its map says.
async fn alpha(name: &str) -> DynamicImage {
    let model = load(&folder(name)).await.unwrap();
    let Task::Segmentation(contract) = model.task() else { panic!("{name} is no segmentation") };
    let picture = decode(&read(&folder(name).join("golden.png")), &Limits::default()).unwrap();
    let output = model.infer(contract.input.to_bytes(&picture)).await.unwrap().output;
    let map = output.into_maps().unwrap();
    let alpha = contract.enlarge_map(&map.view(), (picture.width, picture.height)).unwrap();
    image::GrayImage::from_raw(picture.width, picture.height, alpha).unwrap().into()
}

async fn enlarge(name: &str, magnification: Magnification) -> DynamicImage {
    let net = Upscaler::new(load(&folder(name)).await.unwrap()).unwrap();
    let (pixels, cancel) = (PixelPool::new(2).unwrap(), CancellationToken::new());
    let settings = Settings { limits: Limits::default(), tile_memory_bytes: u64::MAX };
    let input = read(&folder(name).join("golden.png")).into();
    let (out, mut parts) = mpsc::channel::<Bytes>(1);
    let making = upscale(input, magnification, &net, &pixels, &settings, &cancel, |_| {}, out);
    let collecting = async {
        let mut png = Vec::new();
        while let Some(part) = parts.recv().await {
            png.extend_from_slice(&part);
        }
        png
    };
    let (made, png) = tokio::join!(making, collecting);
    made.unwrap();
    image::load_from_memory(&png).unwrap()
}

#[tokio::test]
async fn alpha_is_right_for_every_contract_of_a_segmentation_net() {
    let contracts = ["", "-f16", "-bytes", "-classes", "-letterbox", "-logits"];
    for name in contracts.map(|contract| format!("segment{contract}")) {
        let name = name.as_str();
        let expected = picture(name, "golden-alpha.png");
        let off = difference(&alpha(name).await, &expected);
        assert!(off <= 2, "{name}: alpha is off by {off} levels");
        let (least, most) = expected
            .to_luma8()
            .iter()
            .fold((255, 0), |(low, high), value| (u8::min(low, *value), u8::max(high, *value)));
        assert!(most > least + 100, "{name}: the picture has a subject and a background");
    }
}

#[tokio::test]
async fn an_upscale_is_right_for_every_contract_of_an_upscaler() {
    let (x2, x4) = (Magnification::By(Factor::X2), Magnification::By(Factor::X4));
    for (name, served) in [
        ("upscale-f16", vec![x2]),
        ("upscale-bytes", vec![x2, x4]),
        ("upscale-fixed", vec![x2, x4]),
        ("upscale-x3", vec![x2, x4]),
        ("upscale-x8", vec![x2, x4]),
        ("restore", vec![Magnification::Same]),
    ] {
        for magnification in served {
            let made = enlarge(name, magnification).await;
            let factor = magnification.get();
            // This net blurs, and the tool gives its output the colors of the original.
            let file = if name == "upscale-fixed" { "tool" } else { "golden" };
            let off = difference(&made, &picture(name, &format!("{file}-x{factor}.png")));
            assert!(off <= 1, "{name} at {factor}X is off by {off} levels");
        }
    }
}

#[tokio::test]
async fn every_format_gives_the_same_with_tensors_kept_on_the_device() {
    let gpu = GpuSettings { keep_tensors: Some(true), ..GpuSettings::default() };
    for name in ["upscale-f16", "upscale-bytes"] {
        let manifest = Manifest::read(&folder(name)).unwrap();
        let task = manifest.task.net().unwrap();
        let shapes = task.input_shapes(2, 1 << 30);
        let open = |gpu| {
            let defaults = settings(super::Batching::NONE, super::RunFaults::default());
            let runtime = Runtime::start(RuntimeSettings { gpu, ..defaults }).unwrap();
            let file = read(&folder(name).join(format!("{name}.onnx")));
            runtime.open_net(&file, &[], &task.tensors(), &shapes).unwrap()
        };
        let (mut kept, mut alone) = (open(gpu.clone()), open(GpuSettings::default()));
        for seed in 0..4 {
            let input = ndarray::Array4::from_shape_fn((2, 6, 5, 3), |(n, y, x, c)| {
                ((seed * 7 + n * 13 + c * 5 + y * 3 + x) % 17 * 15) as u8
            });
            let expected = alone.run(&input).unwrap();
            assert_eq!(kept.run(&input).unwrap(), expected, "{name}, seed {seed}");
            let made = expected.into_pictures().unwrap();
            assert_eq!(made.view()[[1, 0, 0, 2]], input[[1, 0, 0, 2]], "{name}, seed {seed}");
        }
        assert_eq!((kept.kept_shapes(), alone.kept_shapes()), (1, 0), "{name}");
    }
}

#[tokio::test]
async fn magic_fix_cleans_with_a_net_that_does_not_enlarge() {
    let (width, height) = (160, 140);
    let flat = RgbImage::from_pixel(width, height, image::Rgb([90, 120, 150]));
    let speckled = RgbImage::from_fn(width, height, |x, y| {
        let sign = if (x + y) % 2 == 0 { 20 } else { -20 };
        image::Rgb([90, 120, 150].map(|sample: i32| (sample + sign) as u8))
    });
    for prompt in ["enhance", "restore"] {
        let models = magic_fix::only(load(&folder("restore")).await.unwrap());
        let mask = magic_fix::disc(width, height, 50);
        let input = magic_fix::png(speckled.clone());
        let made = magic_fix::fix(input, mask, prompt, &models).await.unwrap();
        assert_eq!(made.model.name, "restore");
        let after = image::load_from_memory(&made.png).unwrap().to_rgb8();
        let off = |x: u32, y: u32| after.get_pixel(x, y)[0].abs_diff(flat.get_pixel(x, y)[0]);
        assert!(off(80, 70) <= 3 && off(95, 60) <= 3, "{prompt}: the speckles are gone");
        assert_eq!(off(4, 4), 20, "{prompt}: nothing outside the mask changes");
    }
}

#[test]
fn the_command_line_cleans_with_factor_one() {
    let dir = TempDir::new().unwrap();
    let run = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .args(["run", "upscale", "--device", "cpu", "--factor", "1", "-o"])
            .arg(dir.path().join("out.png"))
            .arg(folder("restore").join("golden.png"))
            .args(more)
            .current_dir(repository())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    let (is_done, said) = run(&["--models-dir", "models/tiny", "--model", "restore"]);
    assert!(is_done, "{said}");
    let made = image::load_from_memory(&read(&dir.path().join("out.png"))).unwrap();
    assert!(difference(&made, &picture("restore", "golden-x1.png")) <= 1);
    for (name, reason) in [
        ("upscale", "upscale: its scale is 4, not 1; --factor 1 takes an upscaler of scale 1"),
        ("segment", "segment: its task is segmentation; --factor 1 takes an upscaler of scale 1"),
    ] {
        let (is_done, said) = run(&["--models-dir", "models/tiny", "--model", name]);
        assert!(!is_done && said.contains(reason), "{said}");
    }
    let (is_done, said) = run(&["--models-dir", "models/tiny"]);
    assert!(
        !is_done && said.contains("no model of scale 1 is bound to enhance or restore"),
        "{said}"
    );

    // Bound to a mode of Magic Fix, it is found without a name.
    let models = TempDir::new().unwrap();
    fs::create_dir(models.path().join("restore")).unwrap();
    for file in ["model.toml", "restore.onnx", "golden.png", "golden-x1.png"] {
        fs::copy(folder("restore").join(file), models.path().join("restore").join(file)).unwrap();
    }
    let bind =
        "[[bind]]\ntool = \"magic-fix\"\ntier = \"paid\"\nmode = \"restore\"\ndevice = \"any\"\n";
    fs::write(models.path().join("tools.toml"), format!("{bind}model = \"restore\"\n")).unwrap();
    let (is_done, said) = run(&["--models-dir", models.path().to_str().unwrap()]);
    assert!(is_done && said.contains("model       restore ("), "{said}");
}

#[tokio::test]
async fn a_graph_that_differs_from_its_manifest_is_refused_with_the_field_to_change() {
    for (name, from, to, reason) in [
        (
            "segment-f16",
            "element = \"f16\"",
            "element = \"f32\"",
            "input \"input\" is f16, but the manifest expects f32; set input.element = \"f16\"",
        ),
        (
            "segment-f16",
            "element = \"f16\"",
            "element = \"f32\"",
            "output \"mask\" is f16, but the manifest expects f32; set output.element = \"f16\"",
        ),
        (
            "segment-bytes",
            "layout = \"nhwc\"",
            "layout = \"nchw\"",
            "has shape [1, 32, 32, 3], but the manifest expects [1, 3, 32, 32] (nchw); set input.layout = \"nhwc\"",
        ),
        (
            "segment-bytes",
            "layout = \"nhw\"",
            "layout = \"nchw\"",
            "has shape [1, 32, 32], but the manifest expects [1, 1, 32, 32] (nchw); set output.layout = \"nhw\"",
        ),
        (
            "segment-classes",
            "classes = 2\nclass = 1",
            "classes = 3\nclass = 1",
            "has shape [1, 2, 8, 8], but the manifest expects [1, 3, 8, 8] (nchw); set postprocess.classes = 2",
        ),
        (
            "segment-classes",
            "width = 8\nheight = 8",
            "",
            "(nchw); set output.width = 8 and output.height = 8",
        ),
        (
            "segment-classes",
            "width = 32\nheight = 32",
            "width = 64\nheight = 48",
            "(nchw); set input.width = 32 and input.height = 32",
        ),
        (
            "upscale-fixed",
            "width = 32\nheight = 32",
            "width = 64\nheight = 64",
            "it takes one size only: set input.width = 32 and input.height = 32",
        ),
        (
            "upscale-fixed",
            "scale = 4",
            "scale = 2",
            "has shape [1, 3, 128, 128], but the manifest expects [1, 3, 64, 64] (nchw); set upscale.scale = 4",
        ),
        (
            "upscale-x3",
            "scale = 3",
            "scale = 4",
            "[1, 384, 384, 3], but the manifest expects [1, 512, 512, 3] (batch, height, width, channels); set upscale.scale",
        ),
        (
            "upscale-fixed",
            "white = 255",
            "",
            "but must be -1 to 2 after division by output.white; set output.white to the value of white, such as 255",
        ),
        (
            "segment-letterbox",
            "pad_color = [255, 255, 255]",
            "pad_color = [0, 0, 0]",
            "golden: golden.png: the mean error is 0.",
        ),
        ("upscale-fixed", "padding = 2", "padding = 0", "golden: golden.png: the mean error is 0."),
    ] {
        let (_dir, copy) = altered(name, &[(from, to)]);
        let error = load(&copy).await.map(|_| ()).expect_err(reason).to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
    // A net of fixed size in a manifest for any size.
    let sizes =
        "largest = 64\nsmallest = 16\nmultiple_of = 1\nmemory_bytes_per_pixel = 400\nblend = 0";
    let changes = [("width = 32\nheight = 32\n", ""), ("blend = 0", sizes)];
    let (_dir, copy) = altered("upscale-fixed", &changes);
    let error = load(&copy).await.map(|_| ()).expect_err("refused").to_string();
    let reason = "set input.width = 32 and input.height = 32, and omit tiling.largest";
    assert!(error.contains(reason), "{error}");
}

#[test]
fn fields_that_contradict_each_other_are_refused_with_the_next_step() {
    for (name, from, to, reason) in [
        (
            "segment-letterbox",
            "pad_color = [255, 255, 255]",
            "",
            "input.fit is \"letterbox\", which needs input.pad_color",
        ),
        (
            "segment-letterbox",
            "fit = \"letterbox\"",
            "",
            "input.pad_color and input.align are only for input.fit = \"letterbox\"",
        ),
        ("segment-classes", "class = 1", "class = 2", "postprocess.class is 2, but must be 0 to 1"),
        (
            "segment-classes",
            "class = 1",
            "",
            "so postprocess.class must say which channel is the subject, 0 to 1",
        ),
        (
            "segment-classes",
            "classes = 2\nclass = 1",
            "",
            "postprocess.range is \"softmax\", which needs several classes",
        ),
        ("segment-classes", "height = 8\n", "", "output.width and output.height must be given"),
        (
            "segment-bytes",
            "layout = \"nhwc\"",
            "layout = \"nhw\"",
            "input.layout is \"nhw\", which has no axis for R, G, and B",
        ),
        (
            "segment-bytes",
            "range = \"clip\"",
            "range = \"clip\"\nclasses = 2\nclass = 0",
            "output.layout is \"nhw\", which has no axis for the 2 classes",
        ),
        (
            "segment-bytes",
            "range = \"clip\"",
            "range = \"sigmoid\"",
            "output.element is \"u8\", but logits are floats",
        ),
        ("segment-bytes", "divide_by = 1", "divide_by = 255", "set input.divide_by = 1"),
        ("upscale-bytes", "divide_by = 1", "divide_by = 255", "set input.divide_by = 1"),
        ("segment", "divide_by = \"max\"", "divide_by = inf", "or a finite number above 0"),
        ("upscale-x3", "divide_by = 255", "divide_by = inf", "input.divide_by is inf, but must be"),
        ("segment", "tolerance = 0.004", "tolerance = inf", "golden.tolerance is inf, but must be"),
        (
            "segment",
            "image = \"golden.png\"",
            "image = \"/etc/hostname\"",
            "golden.image is \"/etc/hostname\", but must be a relative path without `..`",
        ),
        (
            "segment",
            "expected = \"golden-alpha.png\"",
            "expected = \"../golden-alpha.png\"",
            "golden.expected is \"../golden-alpha.png\", but must be a relative path",
        ),
        ("upscale-x3", "scale = 3", "scale = 9", "upscale.scale is 9, but must be 1 to 8"),
        (
            "restore",
            "scale = 1",
            "scale = 1\nresample = true",
            "upscale.resample is true, but a net of scale 1 serves no other factor",
        ),
        (
            "upscale-fixed",
            "padding = 2",
            "padding = 12",
            "are 32 × 32, but a tile needs at least 46: 8 pixels, and 19 of padding on each side",
        ),
        ("upscale-fixed", "height = 32\n", "", "input.width and input.height must be given"),
        (
            "upscale-fixed",
            "blend = 0",
            "blend = 0\nlargest = 64",
            "tiling.largest is 64, but must be omitted: every tile has the 32 × 32 pixels",
        ),
        (
            "upscale-x3",
            "largest = 512\n",
            "",
            "tiling.largest must be above 0; it may be omitted only if input.width",
        ),
        ("segment", "licence = ", "license = ", "unknown field `license`: write `licence`"),
        ("segment", "name = \"mask\"", "name = \"mask\"\nwhite = nan", "output.white is NaN"),
    ] {
        let (_dir, copy) = altered(name, &[(from, to)]);
        let error = Manifest::read(&copy).map(|_| ()).expect_err(reason).to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn a_mean_and_std_of_another_scale_than_the_samples_are_refused_with_the_right_one() {
    for (name, from, to, reason) in [
        (
            "upscale-x3",
            "mean = [0.0, 0.0, 0.0]",
            "mean = [123.675, 116.28, 103.53]",
            "input.mean is 123.675, but samples are 0 to 1 after the division by 255: divide mean and std by 255, or set \
             input.divide_by = 1",
        ),
        (
            "segment-letterbox",
            "divide_by = 255",
            "divide_by = 1",
            "input.std is 0.229, but samples are 0 to 255 after the division by 1: set input.divide_by = 255",
        ),
        (
            "segment",
            "std = [0.229, 0.224, 0.225]",
            "std = [58.395, 57.12, 57.375]",
            "input.std is 58.395, but samples are 0 to 1 after the division by the largest sample: divide mean and std by 255",
        ),
        (
            "segment",
            "mean = [0.485, 0.456, 0.406]",
            "mean = [-0.5, -0.5, -0.5]",
            "input.mean is -0.5, but samples are 0 to 1",
        ),
    ] {
        let (_dir, copy) = altered(name, &[(from, to)]);
        let error = Manifest::read(&copy).map(|_| ()).expect_err(reason).to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn a_checksum_in_upper_case_is_named_with_the_text_to_write() {
    let manifest = Manifest::read(&folder("segment")).unwrap();
    let sha256 = manifest.sha256();
    let upper = sha256.to_uppercase();
    let (_dir, copy) = altered("segment", &[(&sha256, &upper)]);
    let error = Manifest::read(&copy).map(|_| ()).unwrap_err().to_string();
    assert!(error.ends_with(&format!("sha256 must be in lower case: write {sha256:?}")), "{error}");
    let (_dir, copy) = altered("segment", &[(&sha256, "abc")]);
    let error = Manifest::read(&copy).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("sha256 is \"abc\", but must have 64"), "{error}");
}

#[test]
fn a_scale_serves_other_factors_only_where_the_manifest_allows_it() {
    use retouch_catalog::{FixMode, Tool};
    let serves = |name: &str, from: &str, to: &str, tool| {
        let (_dir, copy) = altered(name, &[(from, to)]);
        Manifest::read(&copy).unwrap().task.can_serve(tool)
    };
    let (x2, x4) = (Tool::Upscale(Factor::X2), Tool::Upscale(Factor::X4));
    let resample = "resample = true";
    assert_eq!(serves("upscale-x3", resample, resample, x4), Ok(()));
    let refused = serves("upscale-x3", resample, "", x2).unwrap_err();
    assert!(
        refused.starts_with("its scale is 3, not 2; with upscale.resample = true "),
        "{refused}"
    );
    // Twice as large by resampling would pass for detail.
    let refused = serves("upscale-x3", "scale = 3", "scale = 2", x4).unwrap_err();
    assert_eq!(refused, "its scale is 2, not 4");
    let refused = serves("restore", "scale", "scale", x2).unwrap_err();
    assert!(refused.contains("bind it to enhance or restore of magic-fix"), "{refused}");
    let restore = Tool::MagicFix(FixMode::Restore);
    assert_eq!(serves("restore", "scale", "scale", restore), Ok(()));
    assert!(serves("upscale", "scale", "scale", restore).is_err());
}
