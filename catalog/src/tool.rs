//! Tools, with and without their parameters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::fix_mode::FixMode;
use crate::name::UnknownName;

/// The factor by which an upscale enlarges each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Factor {
    /// Twice as wide and twice as high.
    #[serde(rename = "2")]
    X2,
    /// Four times as wide and four times as high.
    #[serde(rename = "4")]
    X4,
}

impl Factor {
    /// Returns the number, 2 or 4.
    pub const fn get(self) -> u8 {
        match self {
            Self::X2 => 2,
            Self::X4 => 4,
        }
    }

    /// Returns the factor with this number; `None` unless it is 2 or 4.
    pub const fn from_number(number: i16) -> Option<Self> {
        match number {
            2 => Some(Self::X2),
            4 => Some(Self::X4),
            _ => None,
        }
    }
}

/// A tool without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Tool))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "sqlx", sqlx(type_name = "text", rename_all = "kebab-case"))]
pub enum ToolName {
    /// Cuts the subject out of its background.
    RemoveBackground,
    /// Enlarges the picture.
    Upscale,
    /// Repaints a masked area as a prompt describes.
    MagicFix,
}

impl ToolName {
    /// Every tool, in the order the product lists them.
    pub const ALL: [Self; 3] = [Self::RemoveBackground, Self::Upscale, Self::MagicFix];

    /// Returns its name, for example `remove-background`.
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

/// A tool with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Cuts the subject out of its background; the result has a soft alpha channel.
    RemoveBackground,
    Upscale(Factor),
    /// Repaints a masked area in a mode. The mask and the prompt belong to the job.
    MagicFix(FixMode),
}

impl Tool {
    pub const fn name(self) -> ToolName {
        match self {
            Self::RemoveBackground => ToolName::RemoveBackground,
            Self::Upscale(_) => ToolName::Upscale,
            Self::MagicFix(_) => ToolName::MagicFix,
        }
    }

    /// Returns the factor of an upscale; `None` for other tools.
    pub const fn factor(self) -> Option<Factor> {
        match self {
            Self::Upscale(factor) => Some(factor),
            Self::RemoveBackground | Self::MagicFix(_) => None,
        }
    }

    /// Returns the mode of a Magic Fix; `None` for other tools.
    pub const fn mode(self) -> Option<FixMode> {
        match self {
            Self::MagicFix(mode) => Some(mode),
            Self::RemoveBackground | Self::Upscale(_) => None,
        }
    }

    /// Returns the tool in the columns of a row; `None` if they contradict each other.
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

    /// Returns the factor as `jobs.factor` stores it.
    pub fn factor_column(self) -> Option<i16> {
        self.factor().map(|factor| i16::from(factor.get()))
    }
}
