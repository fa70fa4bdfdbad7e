//! Tiers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::UnknownName;

/// Whom a job is for. Decides its price, its model and its place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "sqlx", derive(sqlx::Type))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "sqlx", sqlx(type_name = "text", rename_all = "kebab-case"))]
pub enum Tier {
    /// Paid with credits; always served first.
    Paid,
    /// A signed-in user's free run, one per image and tool.
    Free,
    /// A visitor's free run.
    Visitor,
}

impl Tier {
    /// Every tier, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Paid, Self::Free, Self::Visitor];

    /// Returns its name, for example `paid`.
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
