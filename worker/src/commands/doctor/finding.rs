//! One line of the doctor's report.

use std::fmt;

/// The result of one check, with advice if it failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    status: Status,
    text: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Good,
    Note,
    Bad,
}

impl Finding {
    /// Creates a finding for a check that passed.
    pub fn good(text: impl Into<String>) -> Self {
        Self { status: Status::Good, text: text.into(), advice: None }
    }

    /// Creates a finding for something worth knowing that does not keep the worker from running.
    pub fn note(text: impl Into<String>) -> Self {
        Self { status: Status::Note, text: text.into(), advice: None }
    }

    /// Creates a finding for a check that failed, with advice on how to fix it.
    pub fn bad(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Bad, text: text.into(), advice: Some(advice.into()) }
    }

    pub fn is_bad(&self) -> bool {
        self.status == Status::Bad
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            Status::Good => "ok   ",
            Status::Note => "note ",
            Status::Bad => "WRONG",
        };
        write!(f, "  {mark} {}", self.text)?;
        match &self.advice {
            Some(advice) => write!(f, "\n        → {advice}"),
            None => Ok(()),
        }
    }
}
