//! What an installation offers, and the sentence for a prompt that it cannot follow.

use retouch_catalog::FixMode;

use super::Prompt;

/// What an installation can do with a mask and words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The modes that an engine serves.
    pub modes: Vec<FixMode>,
    /// The words that the text-guided engine knows; `None` when it knows any, or there is none.
    pub vocabulary: Option<Vec<String>>,
    /// Whether the text-guided engine is a demo.
    pub is_demo: bool,
}

impl Offer {
    /// Whether a prompt can be followed here.
    ///
    /// # Errors
    /// A sentence that tells a user what is possible and an operator what to install.
    pub fn check(&self, prompt: &Prompt) -> Result<(), String> {
        let mode = prompt.mode();
        let possible = self.possible();
        if !self.modes.contains(&mode) {
            let wish = match mode {
                FixMode::Edit | FixMode::Add => "paint what words describe",
                FixMode::Restore => "restore",
                FixMode::Remove => "remove things",
                FixMode::Enhance => "enhance details",
            };
            return Err(format!("This installation cannot {wish} yet. {possible} {OPERATOR}"));
        }
        let unknown = match &self.vocabulary {
            Some(vocabulary) if mode.needs_words() => prompt.words_outside(vocabulary),
            _ => Vec::new(),
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let named: Vec<_> = unknown.iter().take(5).map(|word| format!("“{word}”")).collect();
        Err(format!(
            "The demo model of this installation does not know {}; it paints coloured shapes and patterns, \
             such as “a red circle”. {possible} {OPERATOR}",
            named.join(", ")
        ))
    }

    /// What works, as a sentence for users.
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
            None => "You have not been charged.".to_owned(),
            Some((last, [])) => format!("Try {last}. You have not been charged."),
            Some((last, others)) => {
                format!("Try {} or {last}. You have not been charged.", others.join(", "))
            }
        }
    }
}

/// What an operator can do about a prompt that cannot be followed.
const OPERATOR: &str = "(Operators: a text-guided model makes more possible: `scripts/models fetch \
                        sd15-inpainting` and models/README.md say how.)";
