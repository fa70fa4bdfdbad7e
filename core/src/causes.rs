//! Formats an error with its causes in one line.

use std::error::Error;

/// Returns an error with its causes, separated by colons. Some errors, such as sqlx's, repeat their cause in their own
/// text; it appears once.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.ends_with(&text) {
            line = line + ": " + &text;
        }
        cause = error.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn each_cause_appears_once() {
        let cause = std::io::Error::other("connection refused");
        let doubled = sqlx::Error::Io(cause);
        assert_eq!(doubled.to_string(), "error communicating with database: connection refused");
        let error = Err::<(), _>(doubled).context("reading the workers").unwrap_err();
        let expected = "reading the workers: error communicating with database: connection refused";
        assert_eq!(with_causes(error.as_ref()), expected);
    }
}
