//! The contents of our manifests: the tool, its edit, and its model. A manifest contains neither the user nor the
//! prompt.

use chrono::{DateTime, Utc};
use retouch_catalog::{FixMode, Tool};
use serde_json::{Value, json};

use crate::{Format, SourceType};

/// The label of the ingredient inside a definition.
pub(crate) const PARENT: &str = "parent";
/// The namespace of our parameters.
const NAMESPACE: &str = "retouch";

#[derive(Clone, Debug)]
pub struct Model {
    /// The name of its folder in `models/`.
    pub name: String,
    /// The SHA-256 of its files, in hexadecimal digits.
    pub sha256: String,
    /// Whether it was trained; the built-in fill was not.
    pub is_trained: bool,
}

/// A statement of how a picture was made.
#[derive(Clone, Debug)]
pub struct Statement {
    actions: Vec<Value>,
    source: SourceType,
}

impl Statement {
    /// States a run of a tool. `input` is the source type of the input picture: a cutout of a generated picture is
    /// still generated.
    pub fn of_run(tool: Tool, model: &Model, input: Option<&SourceType>) -> Self {
        let own = match (tool, model.is_trained) {
            (Tool::MagicFix(_), true) => SourceType::composite_with_trained_media(),
            (Tool::MagicFix(_), false) => SourceType::composite_synthetic(),
            (Tool::RemoveBackground | Tool::Upscale(_), _) => {
                SourceType::algorithmically_enhanced()
            }
        };
        let (action, description) = match tool {
            Tool::RemoveBackground => ("c2pa.edited", "Removed the background".to_owned()),
            Tool::Upscale(factor) => ("c2pa.resized", format!("Upscaled {} times", factor.get())),
            Tool::MagicFix(mode) => ("c2pa.edited", fix(mode).to_owned()),
        };
        let mut parameters = json!({
            own_name("tool"): tool.name().as_str(),
            own_name("model"): model.name,
            own_name("modelSha256"): model.sha256,
        });
        if let Some(mode) = tool.mode() {
            parameters[own_name("mode")] = mode.as_str().into();
        }
        if let Some(factor) = tool.factor() {
            parameters[own_name("factor")] = factor.get().into();
        }
        let source = match input {
            Some(input) if input.weight() >= own.weight() => input.clone(),
            _ => own.clone(),
        };
        let actions = vec![act(action, &description, Some(&own), parameters)];
        Self { actions, source }
    }

    /// States that a result was written in another format, and whether it was finished before: with a background, a
    /// shadow, a crop, a touch-up, or another size. `result` is the source type of the result.
    pub fn of_rendering(format: Format, is_finished: bool, result: Option<&SourceType>) -> Self {
        let mut actions = Vec::new();
        if is_finished {
            let description =
                "Finished with a background, a shadow, a crop, a touch-up, or another size";
            actions.push(act("c2pa.edited", description, None, json!({})));
        }
        if format != Format::Png {
            let description = format!("Written as {}", format.media_type());
            actions.push(act("c2pa.transcoded", &description, None, json!({})));
        }
        let source = result.cloned().unwrap_or_else(SourceType::algorithmically_enhanced);
        Self { actions, source }
    }

    /// Returns the source type of the whole picture.
    pub fn source(&self) -> &SourceType {
        &self.source
    }

    /// Returns the definition of a manifest without its ingredients.
    pub(crate) fn definition(&self, format: Format, now: DateTime<Utc>) -> Value {
        let when = now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let opened =
            json!({ "action": "c2pa.opened", "parameters": { "ingredientIds": [PARENT] } });
        let mut actions = vec![opened];
        actions.extend(self.actions.iter().cloned());
        for action in &mut actions {
            action["when"] = when.as_str().into();
        }
        json!({
            "claim_generator_info": [agent()],
            "format": format.media_type(),
            "assertions": [{
                "label": "c2pa.actions.v2",
                "data": { "actions": actions, "allActionsIncluded": true },
                "created": true,
            }],
        })
    }
}

const fn fix(mode: FixMode) -> &'static str {
    match mode {
        FixMode::Edit => "Repainted an area from a description",
        FixMode::Restore => "Restored an area",
        FixMode::Remove => "Removed an object",
        FixMode::Enhance => "Enhanced an area",
        FixMode::Add => "Added an object from a description",
    }
}

fn act(action: &str, description: &str, source: Option<&SourceType>, parameters: Value) -> Value {
    let mut act = json!({
        "action": action,
        "description": description,
        "softwareAgent": agent(),
    });
    if let Some(source) = source {
        act["digitalSourceType"] = source.uri().into();
    }
    if parameters.as_object().is_some_and(|named| !named.is_empty()) {
        act["parameters"] = parameters;
    }
    act
}

fn agent() -> Value {
    json!({ "name": "Retouch", "version": env!("CARGO_PKG_VERSION") })
}

fn own_name(name: &str) -> String {
    format!("{NAMESPACE}.{name}")
}
