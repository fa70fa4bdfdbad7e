//! The modes of prompts in the languages that the page speaks.

mod english;
mod german;
mod look;
mod quality;
mod romance;
mod spaced;
#[cfg(test)]
mod tests;
mod unspaced;
mod verb;
mod vocabulary;
mod words;

use retouch_catalog::FixMode;

pub(super) use self::english::is_removal as is_english_removal;
pub(super) use self::vocabulary::ENGLISH;
use super::text::{folded, words_of};

/// Returns the mode that a prompt means, by the table in [`super`].
pub(super) fn mode_of(text: &str) -> FixMode {
    let plain = folded(text);
    spaced::mode_of(text, &plain).or_else(|| unspaced::mode_of(&plain)).unwrap_or_else(|| {
        let words: Vec<_> = words_of(&plain).into_iter().map(str::to_owned).collect();
        if english::mentions_damage(&words) { FixMode::Restore } else { FixMode::Edit }
    })
}
