//! The output of an admin command.

use serde_json::Value;

/// What a command prints, and whether it succeeded.
#[derive(Debug)]
pub struct Answer {
    /// For people.
    pub text: String,
    /// For programs.
    pub json: Value,
    /// False if the command found a problem; the process then exits with 1.
    pub is_good: bool,
}

impl Answer {
    /// Creates the answer of a command that found no problem.
    pub(super) fn good(text: String, json: Value) -> Self {
        Self { text, json, is_good: true }
    }
}
