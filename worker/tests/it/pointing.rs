//! Models that take clicks: `models/tiny/segment-anything` selects what has the color of a point.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use image::{DynamicImage, GrayImage, Rgb, RgbImage};
use retouch_inference::registry::Registry;
use retouch_pixels::Limits;
use retouch_pixels::decode::decode;
use retouch_pixels::select::{Marks, Point, Region, Scene};
use retouch_worker::pixel_pool::PixelPool;
use retouch_worker::select::{Known, Models, Wanted};
use tempfile::TempDir;

use crate::following::{following, problems, settle};
use crate::{repository, runtime};

const BIND: &str = "[[bind]]\ntool = \"remove-background\"\ntier = \"free\"\ndevice = \"any\"\nmodel = \"segment\"\n";
const SELECT: &str = "\n[[select]]\ndevice = \"any\"\nmodel = \"segment-anything\"\n";

/// Returns a folder of models with these bindings. The manifest of the model that takes clicks has each `from`
/// replaced by its `to`.
fn models(tools: &str, changes: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let tiny = repository().join("models/tiny");
    symlink(tiny.join("segment"), folder.path().join("segment")).unwrap();
    let own = folder.path().join("segment-anything");
    fs::create_dir(&own).unwrap();
    for part in ["encoder", "decoder"] {
        symlink(tiny.join("segment-anything").join(part), own.join(part)).unwrap();
    }
    let mut text = fs::read_to_string(tiny.join("segment-anything/model.toml")).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    fs::write(own.join("model.toml"), text).unwrap();
    fs::write(folder.path().join("tools.toml"), tools).unwrap();
    folder
}

/// A red rectangle on the left and a blue one on the right, on gray; no pixel is bright, so `segment` finds nothing.
fn picture() -> Vec<u8> {
    let picture = RgbImage::from_fn(160, 96, |x, y| {
        let is_inside = (24..72).contains(&y);
        match x {
            16..64 if is_inside => Rgb([120, 8, 8]),
            96..144 if is_inside => Rgb([8, 8, 120]),
            _ => Rgb([60, 60, 60]),
        }
    });
    let mut png = std::io::Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture).write_to(&mut png, image::ImageFormat::Png).unwrap();
    png.into_inner()
}

const RED: Point = Point { x: 40, y: 48 };
const BLUE: Point = Point { x: 120, y: 48 };
const GRAY: Point = Point { x: 80, y: 8 };

struct Editor {
    models: Models,
    known: Known,
}

impl Editor {
    fn open(models: &Path) -> Self {
        let registry = Arc::new(Registry::open(models, runtime()).unwrap());
        let scene = Scene::new(decode(&picture(), &Limits::default()).unwrap());
        Self { models: Models::new(registry, PixelPool::new(2).unwrap()), known: Known::new(scene) }
    }

    async fn select(&mut self, marks: Marks) -> Option<GrayImage> {
        let png = self.models.select(&mut self.known, Wanted { marks, ..Wanted::default() }).await;
        Some(image::load_from_memory(&png.unwrap()?).unwrap().into_luma8())
    }
}

/// Returns whether red, blue and gray are selected.
fn colors(selected: &GrayImage) -> [bool; 3] {
    [RED, BLUE, GRAY].map(|at| selected.get_pixel(at.x, at.y).0[0] == 255)
}

fn pointing(positive: &[Point], negative: &[Point]) -> Marks {
    Marks { positive: positive.to_vec(), negative: negative.to_vec(), area: None }
}

#[tokio::test]
async fn points_and_boxes_select_what_the_model_says() {
    let models = models(&[BIND, SELECT].concat(), &[]);
    let mut editor = Editor::open(models.path());
    for (positive, negative, expected) in [
        (vec![RED], vec![], [true, false, false]),
        (vec![BLUE], vec![], [false, true, false]),
        (vec![RED, BLUE], vec![], [true, true, false]),
        (vec![GRAY], vec![], [false, false, true]),
        (vec![RED, BLUE], vec![BLUE], [true, false, false]),
    ] {
        let selected = editor.select(pointing(&positive, &negative)).await.unwrap();
        assert_eq!(colors(&selected), expected, "{positive:?} {negative:?}");
    }
    let exact = editor.select(pointing(&[RED], &[])).await.unwrap();
    let count = exact.pixels().filter(|pixel| pixel.0[0] == 255).count();
    assert!(count.abs_diff(48 * 48) <= 2 * 48, "the edge is found at full size: {count}");
    let area = Region { left: 80, top: 0, width: 80, height: 96 };
    let boxed = Marks { area: Some(area), ..Marks::default() };
    let selected = editor.select(boxed).await.unwrap();
    let [red, blue, _] = colors(&selected);
    assert!(blue && !red, "nothing outside the box");
}

#[tokio::test]
async fn the_encoder_runs_once_for_a_picture() {
    let models = models(&[BIND, SELECT].concat(), &[]);
    let mut editor = Editor::open(models.path());
    let empty = editor.known.memory_bytes();
    editor.select(pointing(&[RED], &[])).await.unwrap();
    let known = editor.known.memory_bytes();
    // The features are f32: the picture at 32 × 32, and at 8 × 8.
    assert_eq!(known - empty, 4 * 3 * (32 * 32 + 8 * 8));
    editor.select(pointing(&[BLUE], &[])).await.unwrap();
    assert_eq!(editor.known.memory_bytes(), known);
}

#[tokio::test]
async fn a_letterboxed_picture_is_pointed_at_where_it_lies() {
    let letterbox = [(
        "resize = \"bilinear\"",
        "resize = \"bilinear\"\nfit = \"letterbox\"\npad_color = [255, 255, 255]",
    )];
    for align in ["", "\nalign = \"top-left\""] {
        let to = format!("{}{align}", letterbox[0].1);
        let models = models(&[BIND, SELECT].concat(), &[(letterbox[0].0, &to)]);
        let mut editor = Editor::open(models.path());
        let selected = editor.select(pointing(&[BLUE], &[])).await.unwrap();
        assert_eq!(colors(&selected), [false, true, false], "{to}");
    }
}

#[tokio::test]
async fn without_a_binding_the_net_that_finds_subjects_answers() {
    let models = models(BIND, &[]);
    let mut editor = Editor::open(models.path());
    // `segment` takes what is bright for the subject. Here nothing is, so the clicked color is selected.
    let selected = editor.select(pointing(&[RED], &[])).await.unwrap();
    assert_eq!(colors(&selected), [true, false, false]);
}

#[tokio::test]
async fn a_model_that_takes_clicks_is_bound_replaced_and_unbound_while_workers_run() {
    let models = models(BIND, &[]);
    let (registry, mut watcher) = following(models.path()).await;
    assert!(registry.selector().await.unwrap().is_none());
    let tools = models.path().join("tools.toml");
    fs::write(&tools, [BIND, SELECT].concat()).unwrap();
    assert!(settle(&mut watcher).await);
    let first = registry.selector().await.unwrap().unwrap();
    let manifest = models.path().join("segment-anything/model.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}# changed\n")).unwrap();
    assert!(settle(&mut watcher).await);
    let second = registry.selector().await.unwrap().unwrap();
    assert!(!first.is_same(&second));
    // A defect keeps the model that serves.
    fs::write(&manifest, text.replace("name = \"image\"", "name = \"picture\"")).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(registry.selector().await.unwrap().unwrap().is_same(&second));
    let [problem] = &problems(&registry)[..] else { panic!("one problem") };
    assert!(problem.contains("input.name is \"picture\""), "{problem}");
    fs::write(&tools, BIND).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(registry.selector().await.unwrap().is_none());
}

#[tokio::test]
async fn wrong_manifests_are_refused_with_the_field_to_change() {
    for (from, to, reason) in [
        (
            "name = \"image\"",
            "name = \"picture\"",
            "input.name is \"picture\", but the encoder's input is \"image\"",
        ),
        (
            "width = 32",
            "width = 64",
            "set input.width, input.height, and input.layout to what it has",
        ),
        (
            "[input]",
            "[features]\nimage_embed = \"embedding\"\n\n[input]",
            "needs an output \"embedding\" of the encoder, which has \"high_res_feats_0\", \"image_embed\"",
        ),
        (
            "[input]",
            "[features]\nembedding = \"image_embed\"\n\n[input]",
            "[features] names \"embedding\", but the inputs of the decoder are",
        ),
        (
            "[input]",
            "[decoder]\npoints = \"points\"\n\n[input]",
            "decoder.points is \"points\", but the inputs of the decoder are",
        ),
        (
            "[input]",
            "[decoder]\nscores = \"scores\"\n\n[input]",
            "decoder.scores is \"scores\", but the outputs of the decoder are",
        ),
        (
            "[input]",
            "[decoder]\nscores = \"masks\"\n\n[input]",
            "output \"masks\" has 4 axes, but must hold floats along 2",
        ),
        ("divide_by = 255", "divide_by = 1e30", "input.std is 1, but samples are 0 to 0.0000"),
        ("[input]", "[decoder]\npoint = \"points\"\n\n[input]", "unknown field `point`"),
    ] {
        let models = models(SELECT, &[(from, to)]);
        let refused = match Registry::open(models.path(), runtime()) {
            Ok(registry) => registry.selector().await.map(|_| ()).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(refused.contains(reason), "{to}: {refused}");
    }
    let wrong = SELECT.replace("segment-anything", "segment");
    let models = models(&[BIND, &wrong].concat(), &[]);
    let refused = Registry::open(models.path(), runtime()).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("its task is segmentation, not segment-anything"), "{refused}");
}

#[test]
fn models_check_names_what_answers_clicks() {
    let twice = [BIND, SELECT, SELECT].concat();
    for (tools, code, every) in [
        (
            [BIND, SELECT].concat(),
            0,
            ["clicks                     segment-anything", "ms per new picture"],
        ),
        (twice, 1, ["[[select]] 2: it is never reached", "a click on a disc selects"]),
    ] {
        let models = models(&tools, &[]);
        let said = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .args(["models", "check", "--device", "cpu", "--models-dir"])
            .arg(models.path())
            .current_dir(repository())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert_eq!(said.status.code(), Some(code), "{text}");
        for part in every {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
