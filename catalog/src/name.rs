//! The error for a name that the catalog does not contain.

/// A text that is not the name of a tool, mode or tier.
#[derive(Debug, thiserror::Error)]
#[error("unknown {what} {text:?}")]
pub struct UnknownName {
    /// The kind of name expected, for example `tool`.
    pub what: &'static str,
    pub text: String,
}
