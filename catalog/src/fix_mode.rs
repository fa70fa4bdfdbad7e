//! The modes of Magic Fix.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::UnknownName;

/// The effect of Magic Fix on the masked area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "sqlx", sqlx(type_name = "text", rename_all = "lowercase"))]
pub enum FixMode {
    /// Repaints it as the prompt describes.
    Edit,
    /// Repairs damage and keeps the content.
    Restore,
    /// Removes the content and continues the surroundings.
    Remove,
    /// Makes the content clearer.
    Enhance,
    /// Adds a thing that the prompt names.
    Add,
}

impl FixMode {
    pub const ALL: [Self; 5] = [Self::Edit, Self::Restore, Self::Remove, Self::Enhance, Self::Add];

    /// Returns its name, for example `remove`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Restore => "restore",
            Self::Remove => "remove",
            Self::Enhance => "enhance",
            Self::Add => "add",
        }
    }

    /// Returns true if only a text-guided model can do it.
    pub const fn needs_words(self) -> bool {
        matches!(self, Self::Edit | Self::Add)
    }

    /// Returns whether its mask is exact unless the request says otherwise: a picture painted from words must not
    /// change its surroundings, and a scratch is restored best from the pixels right beside it, while a removal takes
    /// shadows with it.
    pub const fn is_mask_exact_by_default(self) -> bool {
        match self {
            Self::Edit | Self::Add | Self::Restore => true,
            Self::Remove | Self::Enhance => false,
        }
    }
}

impl fmt::Display for FixMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FixMode {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownName { what: "mode", text: text.to_owned() })
    }
}
