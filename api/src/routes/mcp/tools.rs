//! The tools as clients see them: names, descriptions with prices, and schemas.

use retouch_catalog::{Factor, FixMode, Tool};
use retouch_core::credits::price;
use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use schemars::JsonSchema;

use super::arguments::{Account, MagicFix, RemoveBackground, Upscale};
use super::reply::{AccountOutput, RunOutput};

/// The name of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    RemoveBackground,
    Upscale,
    MagicFix,
    Account,
}

impl Name {
    pub const ALL: [Self; 4] =
        [Self::RemoveBackground, Self::Upscale, Self::MagicFix, Self::Account];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RemoveBackground => "remove_background",
            Self::Upscale => "upscale",
            Self::MagicFix => "magic_fix",
            Self::Account => "account",
        }
    }

    /// Returns the tool with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    /// Returns what clients see of it.
    pub fn describe(self) -> McpTool {
        match self {
            Self::RemoveBackground => run::<RemoveBackground>(
                self,
                "Remove Background",
                &format!(
                    "Cuts the subject out of a picture. The result is a PNG with a transparent background and soft \
                     edges. Costs {} credits.",
                    price(Tool::RemoveBackground)
                ),
            ),
            Self::Upscale => run::<Upscale>(
                self,
                "Upscale",
                &format!(
                    "Enlarges a picture and makes it sharper. Factor 2 costs {} credits, factor 4 costs {}.",
                    price(Tool::Upscale(Factor::X2)),
                    price(Tool::Upscale(Factor::X4))
                ),
            ),
            Self::MagicFix => run::<MagicFix>(
                self,
                "Magic Fix",
                &format!(
                    "Repaints a part of a picture as a prompt says: removes an object, restores damage, enhances \
                     details, or, where a text-guided model is installed, edits and adds things. Pixels outside the \
                     area's reach stay as they are. Costs {} credits. `account` says what this server can do.",
                    price(Tool::MagicFix(FixMode::Remove))
                ),
            ),
            Self::Account => {
                let description = "Returns the credits of the account, the prices of the tools, and what Magic Fix \
                                   can do on this server. Free.";
                McpTool::new(self.as_str(), description, JsonObject::new())
                    .with_title("Account")
                    .with_input_schema::<Account>()
                    .with_output_schema::<AccountOutput>()
                    .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
            }
        }
    }
}

/// Describes a tool that runs.
fn run<Arguments: JsonSchema + 'static>(name: Name, title: &str, description: &str) -> McpTool {
    const ALL: &str = "A run that fails or is canceled costs nothing. The answer has the id of the result, an address \
                       at which it can be downloaded for at least an hour, and a small copy to look at.";
    let hints = ToolAnnotations::new().read_only(false).destructive(false);
    McpTool::new(name.as_str(), format!("{description} {ALL}"), JsonObject::new())
        .with_title(title)
        .with_input_schema::<Arguments>()
        .with_output_schema::<RunOutput>()
        .with_annotations(hints.idempotent(true).open_world(false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_of_a_factor_has_no_other_limits_than_its_values() {
        let tool = Name::Upscale.describe();
        let mut factor = tool.input_schema["properties"]["factor"].clone();
        let text = factor["description"].take();
        assert!(text.is_string(), "{text}");
        assert_eq!(factor, json!({"type": "integer", "enum": [2, 4], "description": null}));
    }
}
