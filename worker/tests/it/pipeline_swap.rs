//! Swaps of text-guided models: all files of a pipeline change together, and a pipeline with a defective part changes
//! nothing.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;

use bytes::Bytes;
use retouch_catalog::{FixMode, Tier, Tool};
use retouch_inference::bindings::Demand;
use retouch_inference::registry::ModelHandle;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::following::{following, problems, serving, settle};
use crate::magic_fix::{disc, fix, only, picture, png};
use crate::{copy, repository};

const EDIT: Demand = Demand { tool: Tool::MagicFix(FixMode::Edit), tier: Tier::Paid };

/// Returns a models directory with the tiny pipeline, bound to every mode with a prompt.
fn models() -> TempDir {
    let models = TempDir::new().unwrap();
    copy(&repository().join("models/tiny/sd-inpaint"), &models.path().join("sd-inpaint"));
    let line = |mode: &str| {
        format!(
            "[[bind]]\ntool = \"magic-fix\"\ntier = \"paid\"\nmode = \"{mode}\"\ndevice = \"any\"\nmodel = \"sd-inpaint\"\n"
        )
    };
    fs::write(models.path().join("tools.toml"), ["edit", "add"].map(line).concat()).unwrap();
    models
}

/// Replaces a file, and its size and checksum in the manifest.
fn replace(folder: &Path, file: &str, bytes: &[u8]) {
    fs::write(folder.join(file), bytes).unwrap();
    let manifest = fs::read_to_string(folder.join("model.toml")).unwrap();
    let (head, tail) = manifest.split_once(&format!("file = \"{file}\"\n")).unwrap();
    let rest = tail.splitn(3, '\n').nth(2).unwrap();
    let stated = format!(
        "file = \"{file}\"\nsha256 = \"{}\"\nsize_bytes = {}\n",
        hex::encode(Sha256::digest(bytes)),
        bytes.len()
    );
    fs::write(folder.join("model.toml"), [head, &stated, rest].concat()).unwrap();
}

async fn painted_by(model: &ModelHandle) -> Bytes {
    let input = png(picture(96, 80));
    fix(input, disc(96, 80, 16), "a red circle", &only(model.clone())).await.unwrap().png
}

#[tokio::test]
async fn a_job_finishes_with_the_old_pipeline_and_the_next_gets_the_new_one() {
    let models = models();
    let folder = models.path().join("sd-inpaint");
    let (registry, mut watcher) = following(models.path()).await;
    let old = registry.model_for(EDIT).await.unwrap();
    let before = painted_by(&old).await;
    let during = tokio::spawn({
        let old = old.clone();
        async move { painted_by(&old).await }
    });
    let scheduler = fs::read_to_string(folder.join("scheduler/scheduler_config.json")).unwrap();
    let brighter = scheduler.replace("\"beta_end\": 0.012", "\"beta_end\": 0.02");
    assert_ne!(brighter, scheduler);
    replace(&folder, "scheduler/scheduler_config.json", brighter.as_bytes());
    assert!(settle(&mut watcher).await);
    assert_eq!(problems(&registry), Vec::<String>::new());
    let new = registry.model_for(EDIT).await.unwrap();
    assert_ne!(new.identity().sha256, old.identity().sha256);
    assert!(serving(&registry).iter().all(|sha256| *sha256 == new.identity().sha256));
    assert_eq!(during.await.unwrap(), before);
    assert_ne!(painted_by(&new).await, before, "another schedule gives another picture");
    // A handle keeps the loaded pipeline, whatever its files contain now.
    assert_eq!(painted_by(&old).await, before);
}

#[tokio::test]
async fn a_defective_part_is_named_and_the_old_pipeline_keeps_serving() {
    let models = models();
    let folder = models.path().join("sd-inpaint");
    let (registry, mut watcher) = following(models.path()).await;
    let old = registry.model_for(EDIT).await.unwrap();
    let before = painted_by(&old).await;
    let read = |file: &str| fs::read(folder.join(file)).unwrap();
    let manifest = read("model.toml");
    let scheduler = String::from_utf8(read("scheduler/scheduler_config.json")).unwrap();
    let clipped = scheduler.replace("\"thresholding\": false", "\"thresholding\": true");
    let mut half = read("unet/model.onnx");
    half.truncate(half.len() / 2);

    // The file, its new content or `None` to remove it, whether the manifest lists that content, and part of the reason.
    let cases = [
        ("unet/model.onnx", Some(half.clone()), false, "sd-inpaint: checksum: unet/model.onnx has"),
        ("unet/model.onnx", Some(half), true, "sd-inpaint: open: unet: "),
        ("unet/model.onnx", Some(read("vae_decoder/model.onnx")), true, "sd-inpaint: open: unet: "),
        ("scheduler/scheduler_config.json", Some(clipped.into()), true, "thresholding"),
        ("text_encoder/model.onnx", None, false, "text_encoder/model.onnx is missing"),
    ];
    for (file, wrong, is_listed, reason) in cases {
        let right = read(file);
        match wrong {
            Some(bytes) if is_listed => replace(&folder, file, &bytes),
            Some(bytes) => fs::write(folder.join(file), bytes).unwrap(),
            None => fs::remove_file(folder.join(file)).unwrap(),
        }
        assert!(settle(&mut watcher).await, "{reason}");
        let found = problems(&registry);
        assert!(found.len() == 1 && found[0].contains(reason), "{reason}: {found:?}");
        let serving = registry.model_for(EDIT).await.unwrap();
        assert!(serving.is_same(&old), "{reason}");
        assert_eq!(painted_by(&serving).await, before, "{reason}");
        fs::write(folder.join(file), right).unwrap();
        fs::write(folder.join("model.toml"), &manifest).unwrap();
        settle(&mut watcher).await;
        assert_eq!(problems(&registry), Vec::<String>::new(), "resolved after {reason}");
    }
}
