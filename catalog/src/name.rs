//! The error for a name that the catalog does not contain.

/// A text that names no known tool, tier or state.
#[derive(Debug, thiserror::Error)]
#[error("unknown {what} {text:?}")]
pub struct UnknownName {
    /// What was looked for, e.g. `tool`.
    pub what: &'static str,
    /// The text that was found.
    pub text: String,
}
