//! Prompts in each language.

mod chinese;
mod combined;
mod english;
mod german;
mod japanese;
mod paintings;
mod quality;
mod removals;
mod romance;

use retouch_catalog::FixMode;

use crate::Prompt;

fn assert_modes(prompts: &[(&str, FixMode)]) {
    for (text, mode) in prompts {
        let prompt = Prompt::parse(text).expect("a prompt");
        assert_eq!(prompt.mode(), *mode, "{text}");
    }
}
