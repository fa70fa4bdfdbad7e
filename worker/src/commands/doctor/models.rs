//! Checks the bound models: loads them as `serve` does and measures their speed.

use std::path::Path;

use retouch_inference::bindings::Bindings;
use retouch_inference::manifest::Manifest;
use retouch_inference::registry::load_model;
use retouch_inference::session::Runtime;

use super::finding::Finding;
use crate::commands::models::measure;

pub async fn check(models_dir: &Path, runtime: &Runtime) -> Vec<Finding> {
    let device = runtime.device();
    let bindings = match Bindings::read(models_dir) {
        Ok(bindings) => bindings,
        Err(error) => {
            let advice =
                "set RETOUCH_MODELS_DIR to the folder that contains tools.toml, or fix that file";
            return vec![Finding::bad(error.to_string(), advice)];
        }
    };
    let mut findings = Vec::new();
    let names = bindings.models_on(device);
    if names.is_empty() {
        let advice = "bind a model in tools.toml; models/README.md shows how";
        findings.push(Finding::bad(format!("tools.toml binds no model on {device}"), advice));
    }
    for name in names {
        findings.push(check_model(&models_dir.join(name), name, runtime).await);
    }
    findings
}

async fn check_model(folder: &Path, name: &str, runtime: &Runtime) -> Finding {
    let manifest = match Manifest::read(folder) {
        Ok(manifest) => manifest,
        Err(error) => {
            return Finding::bad(
                error.to_string(),
                "fix it; models/README.md explains every field",
            );
        }
    };
    let missing = manifest.files.iter().find(|file| !folder.join(&file.file).is_file());
    if let Some(file) = missing {
        let text = format!("{name}: {} is missing", file.file);
        let advice = if manifest.has_source {
            format!("run `scripts/models fetch {name}`")
        } else {
            format!("put the file into {}", folder.display())
        };
        return Finding::bad(text, advice);
    }
    match load_model(manifest, runtime.clone(), |_| {}).await {
        Ok(model) => match measure(&model).await {
            Ok(speed) => Finding::good(format!("{}: {speed}", model.identity())),
            Err(reason) => Finding::bad(
                format!("{} cannot run: {reason}", model.identity()),
                format!("run `retouch-worker models check {name}` for details"),
            ),
        },
        Err(error) => Finding::bad(
            error.to_string(),
            format!("run `retouch-worker models check {name}` for details"),
        ),
    }
}
