//! A registry follows its folder: what it loads, leaves alone, tries again, and says.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use retouch_catalog::{JobClass, Tier, Tool, ToolName};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{Problem, Registry, Watcher};
use tempfile::TempDir;

use crate::onnx::{Model, bind, bind_tiers};
use crate::runtime;

const PAID: Demand = Demand { tool: Tool::RemoveBackground, tier: Tier::Paid };

/// A registry that has loaded what `models` binds, and its watcher.
pub async fn following(models: &Path) -> (Arc<Registry>, Watcher) {
    let registry = Arc::new(Registry::open(models, runtime()).unwrap());
    registry.load_all().await.unwrap();
    let watcher = Watcher::new(Arc::clone(&registry));
    (registry, watcher)
}

/// Looks often enough to see a change, to see that it is over, and to follow it.
pub async fn settle(watcher: &mut Watcher) -> bool {
    let mut changed = false;
    for _ in 0..3 {
        changed |= watcher.look().await;
    }
    changed
}

pub fn told(registry: &Registry) -> Vec<String> {
    registry.problems().iter().map(Problem::to_string).collect()
}

pub fn serving(registry: &Registry) -> Vec<String> {
    registry.loaded().into_iter().map(|model| model.sha256).collect()
}

#[tokio::test]
async fn a_job_keeps_the_model_it_began_with() {
    let models = TempDir::new().unwrap();
    let (old, new) = (Model::new(1.0), Model::new(2.0));
    old.write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    let held = registry.model_for(PAID).await.unwrap();
    new.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!(registry.model_for(PAID).await.unwrap().identity().sha256, new.sha256());
    let input = ndarray::Array4::ones((1, 3, 32, 32));
    let brightness = |output: &ndarray::Array4<f32>| output[[0, 0, 0, 0]];
    let by_old = brightness(&held.infer(input.clone()).await.unwrap().output);
    assert!((by_old - 1.0 / (1.0 + (-3.0_f32).exp())).abs() < 1e-5, "{by_old}");
    assert_eq!(held.identity().sha256, old.sha256());
}

#[tokio::test]
async fn a_file_that_is_still_being_written_is_left_alone() {
    let models = TempDir::new().unwrap();
    let folder = Model::new(1.0).write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    let next = Model::new(2.0);
    let bytes = next.bytes();
    for end in [10, 100, bytes.len() - 1] {
        fs::write(folder.join("made.onnx"), &bytes[..end]).unwrap();
        assert!(!watcher.look().await, "at {end} bytes");
    }
    next.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), told(&registry)), (vec![next.sha256()], vec![]));
}

#[tokio::test]
async fn what_is_written_again_unchanged_is_not_loaded_again() {
    let models = TempDir::new().unwrap();
    let model = Model::new(1.0);
    model.write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    let before = registry.model_for(PAID).await.unwrap();
    assert!(!settle(&mut watcher).await, "nothing has happened");
    model.write(models.path(), "made");
    assert!(!settle(&mut watcher).await, "nothing else has been written");
    assert!(registry.model_for(PAID).await.unwrap().is_same(&before));
    // A golden picture is part of what a model was tried with.
    let golden = models.path().join("made/golden.png");
    fs::write(&golden, crate::photo("chelsea.png")).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(told(&registry)[0].contains("has another size"), "{:?}", told(&registry));
    assert!(registry.model_for(PAID).await.unwrap().is_same(&before));
}

#[tokio::test]
async fn what_was_refused_is_not_tried_again_until_it_changes() {
    let models = TempDir::new().unwrap();
    let good = Model::new(1.0);
    let folder = good.write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    fs::remove_file(folder.join("made.onnx")).unwrap();
    assert!(settle(&mut watcher).await);
    let missing = told(&registry);
    assert!(missing[0].starts_with("made: checksum: ") && missing[0].contains("is missing"));
    assert_eq!(serving(&registry), [good.sha256()]);
    assert!(!settle(&mut watcher).await, "nothing has changed since");
    fs::remove_dir_all(&folder).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(told(&registry)[0].starts_with("made: manifest: "), "{:?}", told(&registry));
    assert_eq!(serving(&registry), [good.sha256()]);
    good.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), told(&registry)), (vec![good.sha256()], vec![]));
}

#[tokio::test]
async fn a_tools_toml_that_is_wrong_changes_nothing_and_models_are_still_followed() {
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    for (text, words) in [
        ("[[bind]]\ntool = \"remove-backgrounds\"", "tools.toml: bindings: "),
        (
            "[[bind]]\ntool = \"remove-background\"\ntier = \"paid\"\ndevice = \"any\"\nmodel = \"../made\"",
            "must be the name of a folder",
        ),
    ] {
        fs::write(models.path().join("tools.toml"), text).unwrap();
        assert!(settle(&mut watcher).await);
        assert!(told(&registry)[0].contains(words), "{:?}", told(&registry));
    }
    let next = Model::new(2.0);
    next.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), told(&registry).len()), (vec![next.sha256()], 1));
    fs::remove_file(models.path().join("tools.toml")).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(told(&registry)[0].contains("No such file"), "{:?}", told(&registry));
    bind(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), told(&registry)), (vec![next.sha256()], vec![]));
}

#[tokio::test]
async fn a_model_that_is_bound_anew_and_wrong_leaves_the_old_one_serving() {
    let models = TempDir::new().unwrap();
    let old = Model::new(1.0);
    old.write(models.path(), "made");
    Model::new(f32::NAN).write(models.path(), "other");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    bind(models.path(), "other");
    assert!(settle(&mut watcher).await);
    assert_eq!(told(&registry), ["other: warm-up: 1024 of 1024 output values are not numbers"]);
    assert_eq!(registry.model_for(PAID).await.unwrap().identity().sha256, old.sha256());
    assert_eq!(serving(&registry), [old.sha256()]);
}

#[tokio::test]
async fn classes_come_and_go_with_tools_toml() {
    let models = TempDir::new().unwrap();
    let model = Model::new(1.0);
    model.write(models.path(), "made");
    bind_tiers(models.path(), "made", &["paid", "free"]);
    let (registry, mut watcher) = following(models.path()).await;
    let class = |tier| JobClass { tier, tool: ToolName::RemoveBackground };
    assert_eq!(registry.classes(), [class(Tier::Paid), class(Tier::Free)]);
    bind_tiers(models.path(), "made", &["paid", "visitor"]);
    assert!(settle(&mut watcher).await);
    assert_eq!(told(&registry), Vec::<String>::new());
    assert_eq!(registry.classes(), [class(Tier::Paid), class(Tier::Visitor)]);
    let [free, visitor] = [Tier::Free, Tier::Visitor].map(|tier| Demand { tier, ..PAID });
    let unbound = registry.model_for(free).await.map(|_| ()).unwrap_err().to_string();
    assert_eq!(unbound, "tools.toml binds no model to remove-background:free on cpu");
    assert_eq!(registry.model_for(visitor).await.unwrap().identity().sha256, model.sha256());
    // What is bound for the first time and wrong is named, and serves nobody.
    Model::new(f32::NAN).write(models.path(), "wrong");
    let line = |tier: &str, model: &str| {
        format!(
            "[[bind]]\ntool = \"remove-background\"\ntier = \"{tier}\"\ndevice = \"any\"\nmodel = \"{model}\"\n"
        )
    };
    let text = [line("paid", "made"), line("free", "wrong")].concat();
    fs::write(models.path().join("tools.toml"), text).unwrap();
    assert!(settle(&mut watcher).await);
    assert_eq!(told(&registry), ["wrong: warm-up: 1024 of 1024 output values are not numbers"]);
    assert_eq!(registry.classes(), [class(Tier::Paid)]);
    // And nothing at all.
    fs::write(models.path().join("tools.toml"), "").unwrap();
    assert!(settle(&mut watcher).await);
    assert_eq!((registry.classes(), told(&registry)), (vec![], vec![]));
}

#[tokio::test]
async fn a_model_that_is_wrong_at_the_start_stops_the_start_with_its_reason() {
    let models = TempDir::new().unwrap();
    Model::new(f32::NAN).write(models.path(), "made");
    bind(models.path(), "made");
    let registry = Registry::open(models.path(), runtime()).unwrap();
    let error = registry.load_all().await.expect_err("it is refused").to_string();
    assert!(error.contains("warm-up: 1024 of 1024 output values are not numbers"), "{error}");
}
