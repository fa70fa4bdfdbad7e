//! Why a scheduler's settings are refused.

use serde_json::Value;

use super::name::SchedulerName;

/// Settings that are not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("the class {0} is not implemented")]
    Class(String),
    /// The class is not implemented, but another one can take its place.
    #[error(
        "the class {0} is not implemented. The weights do not depend on it: state another scheduler in model.toml, \
         `sampling.scheduler` = {names}",
        names = names()
    )]
    Replaceable(String),
    /// No other scheduler can sample nets of this class.
    #[error(
        "the class {0} is of another family, so `sampling.scheduler` cannot replace it; remove that field from model.toml"
    )]
    NotReplaceable(String),
    /// A field has an unsupported value.
    #[error("`{field}` is {value}: {reason}")]
    Refused {
        field: String,
        /// As JSON.
        value: String,
        reason: String,
    },
    /// A field has a value of the wrong type.
    #[error("`{field}` is {value}, but must be {expected}")]
    Malformed {
        field: String,
        /// As JSON.
        value: String,
        expected: &'static str,
    },
    /// The settings have no schedule with this number of steps.
    #[error("{0}")]
    Steps(String),
    /// Several of these.
    #[error("{}", joined(.0))]
    Several(Vec<Self>),
}

fn names() -> String {
    let names = SchedulerName::ALL.map(|name| format!("\"{name}\""));
    names.join(" or ")
}

fn joined(errors: &[ConfigError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

impl ConfigError {
    pub(super) fn refused(
        field: &str,
        value: &(impl ToString + ?Sized),
        reason: impl Into<String>,
    ) -> Self {
        Self::Refused { field: field.to_owned(), value: value.to_string(), reason: reason.into() }
    }

    /// The value is shortened if it is long.
    pub(super) fn malformed(field: &str, value: &Value, expected: &'static str) -> Self {
        const MAX_CHARS: usize = 60;
        let mut text = value.to_string();
        if text.chars().count() > MAX_CHARS {
            text = text.chars().take(MAX_CHARS).chain("…".chars()).collect();
        }
        Self::Malformed { field: field.to_owned(), value: text, expected }
    }
}
