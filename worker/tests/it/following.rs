//! A registry follows its models directory: what it loads, what it leaves alone, and what it reports.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use retouch_catalog::{FixMode, JobClass, Tier, Tool, ToolName};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::{Problem, Registry, Watcher};
use tempfile::TempDir;

use crate::diffusion::copy;
use crate::onnx::{Model, bind, bind_tiers};
use crate::{repository, runtime};

const PAID: Demand = Demand { tool: Tool::RemoveBackground, tier: Tier::Paid };

/// Returns a registry with every bound model loaded, and its watcher.
pub async fn following(models: &Path) -> (Arc<Registry>, Watcher) {
    let registry = Arc::new(Registry::open(models, runtime()).unwrap());
    registry.load_all().await.unwrap();
    let watcher = Watcher::new(Arc::clone(&registry));
    (registry, watcher)
}

/// Polls often enough to notice a change, to see that it has settled, and to apply it.
pub async fn settle(watcher: &mut Watcher) -> bool {
    settle_at(watcher, Instant::now()).await
}

async fn settle_at(watcher: &mut Watcher, time: Instant) -> bool {
    let mut changed = false;
    for _ in 0..3 {
        changed |= watcher.poll(time).await;
    }
    changed
}

pub fn problems(registry: &Registry) -> Vec<String> {
    registry.problems().iter().map(Problem::to_string).collect()
}

pub fn serving(registry: &Registry) -> Vec<String> {
    registry.loaded().into_iter().map(|model| model.sha256).collect()
}

#[tokio::test]
async fn a_job_keeps_the_model_it_started_with() {
    let models = TempDir::new().unwrap();
    let (old, new) = (Model::new(1.0), Model::new(2.0));
    old.write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    let held = registry.model_for(PAID).await.unwrap();
    new.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!(registry.model_for(PAID).await.unwrap().identity().sha256, new.sha256());
    let input = ndarray::Array4::from_elem((1, 32, 32, 3), 255);
    let by_old = held.infer(input).await.unwrap().output.values()[[0, 0, 0, 0]];
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
        assert!(!watcher.poll(Instant::now()).await, "at {end} bytes");
    }
    next.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), problems(&registry)), (vec![next.sha256()], vec![]));
}

#[tokio::test]
async fn unchanged_files_are_not_loaded_again() {
    let models = TempDir::new().unwrap();
    let model = Model::new(1.0);
    model.write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    let before = registry.model_for(PAID).await.unwrap();
    assert!(!settle(&mut watcher).await, "no file has changed");
    model.write(models.path(), "made");
    assert!(!settle(&mut watcher).await, "the content is the same");
    assert!(registry.model_for(PAID).await.unwrap().is_same(&before));
    // A changed golden image makes another version.
    let golden = models.path().join("made/golden.png");
    fs::write(&golden, crate::photo("chelsea.png")).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(
        problems(&registry)[0].contains("but the result for golden.png is"),
        "{:?}",
        problems(&registry)
    );
    assert!(registry.model_for(PAID).await.unwrap().is_same(&before));
}

#[tokio::test]
async fn a_refused_model_is_not_loaded_again_until_it_changes() {
    let models = TempDir::new().unwrap();
    let good = Model::new(1.0);
    let folder = good.write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    fs::remove_file(folder.join("made.onnx")).unwrap();
    assert!(settle(&mut watcher).await);
    let missing = problems(&registry);
    assert!(missing[0].starts_with("made: checksum: ") && missing[0].contains("is missing"));
    assert_eq!(serving(&registry), [good.sha256()]);
    assert!(!settle(&mut watcher).await, "no file has changed since");
    fs::remove_dir_all(&folder).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(problems(&registry)[0].starts_with("made: manifest: "), "{:?}", problems(&registry));
    assert_eq!(serving(&registry), [good.sha256()]);
    good.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), problems(&registry)), (vec![good.sha256()], vec![]));
}

#[tokio::test]
async fn a_model_that_was_refused_for_a_passing_reason_is_loaded_again_later() {
    for (name, step) in [("made.onnx", "checksum"), ("golden.png", "golden")] {
        let models = TempDir::new().unwrap();
        let (old, next) = (Model::new(1.0), Model::new(2.0));
        old.write(models.path(), "made");
        bind(models.path(), "made");
        let (registry, mut watcher) = following(models.path()).await;
        let file = next.write(models.path(), "made").join(name);
        let written_at = fs::metadata(&file).unwrap().modified().unwrap();
        // What the disk returns, and not the files as the watcher sees them.
        let reads = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(written_at).unwrap();
        };
        let good = fs::read(&file).unwrap();
        reads(&vec![0; good.len()]);
        assert!(settle(&mut watcher).await);
        let refused = problems(&registry);
        assert!(refused[0].starts_with(&format!("made: {step}: ")), "{refused:?}");
        assert_eq!(serving(&registry), [old.sha256()]);
        let refused_at = Instant::now();
        let mut after =
            async |secs| settle_at(&mut watcher, refused_at + Duration::from_secs(secs)).await;
        assert!(!after(61).await, "it is refused again");
        reads(&good);
        assert!(!after(120).await, "the pause doubles");
        assert!(after(182).await);
        assert_eq!((serving(&registry), problems(&registry)), (vec![next.sha256()], vec![]));
    }
}

#[tokio::test]
async fn an_invalid_tools_toml_changes_nothing_and_models_are_still_followed() {
    let models = TempDir::new().unwrap();
    Model::new(1.0).write(models.path(), "made");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    for (text, reason) in [
        ("[[bind]]\ntool = \"remove-backgrounds\"", "tools.toml: bindings: "),
        (
            "[[bind]]\ntool = \"remove-background\"\ntier = \"paid\"\ndevice = \"any\"\nmodel = \"../made\"",
            "must be the name of a folder",
        ),
        // A file that was just truncated must not withdraw every tool.
        ("", "tools.toml: bindings: the file is empty, so no tool would be served; "),
        ("# nothing\n", "it has no [[bind]], so no tool would be served; "),
    ] {
        fs::write(models.path().join("tools.toml"), text).unwrap();
        assert!(settle(&mut watcher).await);
        assert!(problems(&registry)[0].contains(reason), "{:?}", problems(&registry));
        assert_eq!(serving(&registry), [Model::new(1.0).sha256()]);
        assert!(!registry.classes().is_empty());
    }
    let next = Model::new(2.0);
    next.write(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), problems(&registry).len()), (vec![next.sha256()], 1));
    fs::remove_file(models.path().join("tools.toml")).unwrap();
    assert!(settle(&mut watcher).await);
    assert!(problems(&registry)[0].contains("No such file"), "{:?}", problems(&registry));
    bind(models.path(), "made");
    assert!(settle(&mut watcher).await);
    assert_eq!((serving(&registry), problems(&registry)), (vec![next.sha256()], vec![]));
}

#[tokio::test]
async fn a_newly_bound_model_with_a_defect_leaves_the_old_one_serving() {
    let models = TempDir::new().unwrap();
    let old = Model::new(1.0);
    old.write(models.path(), "made");
    Model::new(f32::NAN).write(models.path(), "other");
    bind(models.path(), "made");
    let (registry, mut watcher) = following(models.path()).await;
    bind(models.path(), "other");
    assert!(settle(&mut watcher).await);
    let [problem] = &problems(&registry)[..] else { panic!("one problem") };
    assert!(problem.starts_with("other: warm-up: 1024 of 1024 output values are not finite: 1024 are NaN and 0 infinite; "), "{problem}");
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
    assert_eq!(problems(&registry), Vec::<String>::new());
    assert_eq!(registry.classes(), [class(Tier::Paid), class(Tier::Visitor)]);
    let [free, visitor] = [Tier::Free, Tier::Visitor].map(|tier| Demand { tier, ..PAID });
    let unbound = registry.model_for(free).await.map(|_| ()).unwrap_err().to_string();
    assert_eq!(unbound, "tools.toml binds no model to remove-background:free on cpu");
    assert_eq!(registry.model_for(visitor).await.unwrap().identity().sha256, model.sha256());
    // A newly bound model with a defect is reported and serves no demand.
    Model::new(f32::NAN).write(models.path(), "wrong");
    let line = |tier: &str, model: &str| {
        format!(
            "[[bind]]\ntool = \"remove-background\"\ntier = \"{tier}\"\ndevice = \"any\"\nmodel = \"{model}\"\n"
        )
    };
    let text = [line("paid", "made"), line("free", "wrong")].concat();
    fs::write(models.path().join("tools.toml"), text).unwrap();
    assert!(settle(&mut watcher).await);
    let [problem] = &problems(&registry)[..] else { panic!("one problem") };
    assert!(
        problem.starts_with("wrong: warm-up: 1024 of 1024 output values are not finite"),
        "{problem}"
    );
    assert_eq!(registry.classes(), [class(Tier::Paid)]);
}

#[tokio::test]
async fn a_defective_model_fails_the_start_with_its_reason() {
    let models = TempDir::new().unwrap();
    Model::new(f32::NAN).write(models.path(), "made");
    bind(models.path(), "made");
    let registry = Registry::open(models.path(), runtime()).unwrap();
    let error = registry.load_all().await.expect_err("the model is refused").to_string();
    assert!(error.contains("warm-up: 1024 of 1024 output values are not finite"), "{error}");
}

/// Binds Magic Fixes of some modes, with more fields per line.
fn bind_fixes(models: &Path, lines: &[(FixMode, &str, &str)]) {
    let line = |(mode, model, fields): &(FixMode, &str, &str)| {
        format!(
            "[[bind]]\ntool = \"magic-fix\"\ntier = \"paid\"\ndevice = \"any\"\nmode = \"{mode}\"\nmodel = \"{model}\"\n{fields}"
        )
    };
    let tools: String = lines.iter().map(line).collect();
    fs::write(models.join("tools.toml"), tools).unwrap();
}

#[tokio::test]
async fn a_mode_without_a_model_for_large_pictures_is_not_served() {
    let models = copy(&repository().join("models/tiny"));
    bind_fixes(models.path(), &[(FixMode::Remove, "fill-floats", "")]);
    let (registry, mut watcher) = following(models.path()).await;
    assert_eq!(registry.modes(), [FixMode::Remove]);
    fs::remove_file(models.path().join("sdxl-inpaint/unet/model.onnx")).unwrap();
    let small = (FixMode::Edit, "sd-inpaint", "largest_pixels = 1000000\n");
    let any = (FixMode::Edit, "sdxl-inpaint", "");
    bind_fixes(models.path(), &[(FixMode::Remove, "fill-floats", ""), small, any]);
    assert!(settle(&mut watcher).await);
    assert!(problems(&registry)[0].starts_with("sdxl-inpaint: "), "{:?}", problems(&registry));
    assert_eq!(registry.modes(), [FixMode::Remove]);
}
