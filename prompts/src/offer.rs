//! The modes that an installation can serve, and the message for a prompt that it cannot follow.

use retouch_catalog::FixMode;

use super::Prompt;

/// The abilities of Magic Fix in an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The modes that a model serves.
    pub modes: Vec<FixMode>,
    /// The words that the text-guided model knows; `None` if it accepts any word or there is no such model.
    pub vocabulary: Option<Vec<String>>,
    /// True if the text-guided model is a demo.
    pub is_demo: bool,
}

impl Offer {
    /// Checks that this installation can follow a prompt.
    ///
    /// # Errors
    /// A message that says what is wrong and what is possible instead.
    pub fn check(&self, prompt: &Prompt) -> Result<(), String> {
        let mode = prompt.mode();
        let possible = self.possible();
        if !self.modes.contains(&mode) {
            let request = match mode {
                FixMode::Edit | FixMode::Add => "paint from a description",
                FixMode::Restore => "restore",
                FixMode::Remove => "remove things",
                FixMode::Enhance => "enhance details",
            };
            return Err(format!("This server cannot {request} yet.{possible}"));
        }
        let unknown = match &self.vocabulary {
            Some(vocabulary) if mode.needs_words() => prompt.unknown_words(vocabulary),
            _ => Vec::new(),
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let quoted: Vec<_> = unknown.iter().take(5).map(|word| format!("“{word}”")).collect();
        Err(format!(
            "This server paints only colored shapes and patterns, such as “a red circle”. It does not know {}.{possible}",
            quoted.join(", ")
        ))
    }

    /// Returns a sentence with prompts that work here, after a space; empty if there are none.
    fn possible(&self) -> String {
        let can: Vec<_> = [
            (FixMode::Remove, "“remove it”"),
            (FixMode::Restore, "“restore”"),
            (FixMode::Enhance, "“enhance details”"),
        ]
        .into_iter()
        .filter(|(mode, _)| self.modes.contains(mode))
        .map(|(_, words)| words)
        .collect();
        match can.split_last() {
            None => String::new(),
            Some((last, [])) => format!(" Try {last}."),
            Some((last, others)) => format!(" Try {} or {last}.", others.join(", ")),
        }
    }
}
