//! The tools, with and without their parameters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::fix_mode::FixMode;
use crate::name::UnknownName;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "sqlx", sqlx(type_name = "text", rename_all = "kebab-case"))]
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
    /// Repaints a masked area. The mask and the prompt belong to the job.
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
}
