//! The models that are bound, loaded as `serve` would load them, with their speed.

use std::path::Path;

use retouch_inference::bindings::Bindings;
use retouch_inference::manifest::Manifest;
use retouch_inference::registry::load_model;
use retouch_inference::session::Runtime;

use super::Finding;
use crate::commands::models::measure;

pub async fn look(models_dir: &Path, runtime: &Runtime) -> Vec<Finding> {
    let device = runtime.device();
    let bindings = match Bindings::read(models_dir) {
        Ok(bindings) => bindings,
        Err(error) => {
            let advice =
                "set RETOUCH_MODELS_DIR to the folder that holds tools.toml, or mend that file";
            return vec![Finding::bad(error.to_string(), advice)];
        }
    };
    let mut findings = Vec::new();
    let names = bindings.models(device);
    if names.is_empty() {
        let advice = "bind a model in tools.toml; models/README.md shows how";
        findings.push(Finding::bad(format!("tools.toml binds nothing on {device}"), advice));
    }
    for name in names {
        findings.push(one(&models_dir.join(name), name, runtime).await);
    }
    findings
}

async fn one(folder: &Path, name: &str, runtime: &Runtime) -> Finding {
    let manifest = match Manifest::read(folder) {
        Ok(manifest) => manifest,
        Err(error) => {
            return Finding::bad(error.to_string(), "mend it; models/README.md has every field");
        }
    };
    let missing = manifest.files.iter().find(|file| !folder.join(&file.file).is_file());
    if let Some(file) = missing {
        let text = format!("{name}: {} is missing", file.file);
        let advice = if manifest.has_source {
            format!("run `scripts/models fetch {name}`")
        } else {
            format!("bring it: put the file into {}", folder.display())
        };
        return Finding::bad(text, advice);
    }
    match load_model(manifest, runtime.clone(), |_| {}).await {
        Ok(model) => match measure(&model).await {
            Ok(speed) => Finding::good(format!("{}: {speed}", model.identity())),
            Err(reason) => Finding::bad(
                format!("{} cannot run: {reason}", model.identity()),
                format!("`retouch-worker models check {name}` says more"),
            ),
        },
        Err(error) => Finding::bad(
            error.to_string(),
            format!("`retouch-worker models check {name}` says more"),
        ),
    }
}
