//! The tools a person can run, what each costs, and who may run it.

mod count;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::magic_fix::FixMode;

pub use count::{Count, CountUnit};

/// How many times larger an upscale makes each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Factor {
    /// Twice as wide and twice as high.
    #[serde(rename = "2")]
    X2,
    /// Four times as wide and four times as high.
    #[serde(rename = "4")]
    X4,
}

impl Factor {
    /// The number itself: 2 or 4.
    pub const fn get(self) -> u8 {
        match self {
            Self::X2 => 2,
            Self::X4 => 4,
        }
    }

    /// The factor that a row holds.
    pub const fn from_number(number: i16) -> Option<Self> {
        match number {
            2 => Some(Self::X2),
            4 => Some(Self::X4),
            _ => None,
        }
    }
}

/// A kind of work, without its parameters: the name of a tool in the database, in the queue, in
/// `models/tools.toml` and in JSON.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
)]
#[serde(rename_all = "kebab-case")]
#[sqlx(type_name = "text", rename_all = "kebab-case")]
pub enum ToolName {
    /// Cuts the subject out of its background.
    RemoveBackground,
    /// Makes the picture larger.
    Upscale,
    /// Repaints a masked area as a prompt says.
    MagicFix,
}

impl ToolName {
    /// Every tool, in the order the product lists them.
    pub const ALL: [Self; 3] = [Self::RemoveBackground, Self::Upscale, Self::MagicFix];

    /// The name as text, e.g. `remove-background`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RemoveBackground => "remove-background",
            Self::Upscale => "upscale",
            Self::MagicFix => "magic-fix",
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no known tool, tier or state.
#[derive(Debug, thiserror::Error)]
#[error("unknown {what} {text:?}")]
pub struct UnknownName {
    /// What was looked for, e.g. `tool`.
    pub what: &'static str,
    /// The text that was found.
    pub text: String,
}

impl FromStr for ToolName {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|tool| tool.as_str() == text)
            .ok_or_else(|| UnknownName { what: "tool", text: text.to_owned() })
    }
}

/// A tool with everything a run of it needs besides the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Cuts the subject out of its background; the result has a soft alpha channel.
    RemoveBackground,
    /// Makes the picture larger by `factor`.
    Upscale(Factor),
    /// Repaints a masked area. The mask and the words are the job's own: [`crate::jobs::Fix`].
    MagicFix(FixMode),
}

impl Tool {
    /// The kind of work this is.
    pub const fn name(self) -> ToolName {
        match self {
            Self::RemoveBackground => ToolName::RemoveBackground,
            Self::Upscale(_) => ToolName::Upscale,
            Self::MagicFix(_) => ToolName::MagicFix,
        }
    }

    /// The factor of an upscale.
    pub const fn factor(self) -> Option<Factor> {
        match self {
            Self::Upscale(factor) => Some(factor),
            Self::RemoveBackground | Self::MagicFix(_) => None,
        }
    }

    /// The mode of a Magic Fix.
    pub const fn mode(self) -> Option<FixMode> {
        match self {
            Self::MagicFix(mode) => Some(mode),
            Self::RemoveBackground | Self::Upscale(_) => None,
        }
    }

    /// The tool that a row names; `None` when its columns do not fit together.
    pub const fn from_columns(
        name: ToolName,
        factor: Option<i16>,
        mode: Option<FixMode>,
    ) -> Option<Self> {
        match (name, factor, mode) {
            (ToolName::RemoveBackground, None, None) => Some(Self::RemoveBackground),
            (ToolName::Upscale, Some(number), None) => match Factor::from_number(number) {
                Some(factor) => Some(Self::Upscale(factor)),
                None => None,
            },
            (ToolName::MagicFix, None, Some(mode)) => Some(Self::MagicFix(mode)),
            _ => None,
        }
    }

    /// The factor as its column holds it.
    pub fn factor_column(self) -> Option<i16> {
        self.factor().map(|factor| i16::from(factor.get()))
    }

    /// What a paid run costs, in credits.
    pub const fn cost(self) -> i32 {
        match self {
            Self::RemoveBackground => 5,
            Self::Upscale(Factor::X2) => 3,
            Self::Upscale(Factor::X4) => 6,
            Self::MagicFix(_) => 8,
        }
    }
}

/// Who a job is run for: decides its price, its model and its place in the queue.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
)]
#[serde(rename_all = "kebab-case")]
#[sqlx(type_name = "text", rename_all = "kebab-case")]
pub enum Tier {
    /// Paid with credits; always served first.
    Paid,
    /// A signed-in user's free run, one an image.
    Free,
    /// A visitor's free run.
    Visitor,
}

impl Tier {
    /// Every tier, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Paid, Self::Free, Self::Visitor];

    /// The name as text, e.g. `paid`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paid => "paid",
            Self::Free => "free",
            Self::Visitor => "visitor",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Tier {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.as_str() == text)
            .ok_or_else(|| UnknownName { what: "tier", text: text.to_owned() })
    }
}

/// A tool and a tier: the unit that has a stream of its own in the queue and a model of its own in
/// `models/tools.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobClass {
    /// How urgent it is; first, so that classes sort by urgency.
    pub tier: Tier,
    /// What is to be done.
    pub tool: ToolName,
}

impl fmt::Display for JobClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tool, self.tier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_the_ones_the_product_advertises() {
        assert_eq!(Tool::RemoveBackground.cost(), 5);
        assert_eq!(Tool::Upscale(Factor::X2).cost(), 3);
        assert_eq!(Tool::Upscale(Factor::X4).cost(), 6);
        assert_eq!(Tool::MagicFix(FixMode::Remove).cost(), 8);
    }

    #[test]
    fn names_read_back_as_what_they_were_written_from() {
        for tool in ToolName::ALL {
            assert_eq!(tool.as_str().parse::<ToolName>().expect("a known name"), tool);
        }
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse::<Tier>().expect("a known name"), tier);
        }
        assert!("sharpen".parse::<ToolName>().is_err());
    }

    #[test]
    fn paid_classes_sort_before_free_ones() {
        let mut classes = [
            JobClass { tier: Tier::Visitor, tool: ToolName::RemoveBackground },
            JobClass { tier: Tier::Paid, tool: ToolName::Upscale },
            JobClass { tier: Tier::Free, tool: ToolName::RemoveBackground },
        ];
        classes.sort();
        assert_eq!(classes.map(|class| class.tier), [Tier::Paid, Tier::Free, Tier::Visitor]);
    }
}
