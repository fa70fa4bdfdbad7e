//! What a Magic Fix is asked to do: the words, and the mode they mean.
//!
//! Which mode a prompt means is decided by one small table, the same everywhere, so that a prompt that no
//! installed engine can follow is refused before anything is held. The first line that fits wins:
//!
//! | the prompt | mode | what follows it |
//! |---|---|---|
//! | begins with *remove, erase, delete, get rid of, take out, hide, without* …, or *clean, clear, no* before a thing, or makes something *disappear*, and puts nothing in its place (*replace, instead, and add*) | remove | a fill from what is around |
//! | begins with *restore, repair, mend, fix, heal, unscratch, inpaint*, or speaks of *scratches, damage, a tear, an old photo* | restore | a fill where strokes are thin, else the upscaler |
//! | begins with *enhance, sharpen, improve, upscale, denoise, deblur, refine*, or speaks of *more detail, sharper, clearer, higher quality* | enhance | the upscaler |
//! | begins with *add, put, insert, place, draw, paint, give* | add | a text-guided model |
//! | anything else | edit | a text-guided model |

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::tool::UnknownName;

/// The longest prompt, in characters.
pub const MAX_PROMPT_LENGTH: usize = 500;

/// What is to happen to the masked area.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum FixMode {
    /// It becomes what the words say.
    Edit,
    /// Damage goes, what was there stays.
    Restore,
    /// What was there goes; its surroundings go on.
    Remove,
    /// What is there becomes clearer.
    Enhance,
    /// Something that the words name appears.
    Add,
}

impl FixMode {
    /// Every mode.
    pub const ALL: [Self; 5] = [Self::Edit, Self::Restore, Self::Remove, Self::Enhance, Self::Add];

    /// The mode as text, e.g. `remove`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Restore => "restore",
            Self::Remove => "remove",
            Self::Enhance => "enhance",
            Self::Add => "add",
        }
    }

    /// Whether only an engine that understands words can do it.
    pub const fn needs_words(self) -> bool {
        matches!(self, Self::Edit | Self::Add)
    }
}

impl fmt::Display for FixMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FixMode {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownName { what: "mode", text: text.to_owned() })
    }
}

/// Words that begin a prompt of a mode.
const REMOVE: [&str; 15] = [
    "remove",
    "erase",
    "delete",
    "eliminate",
    "hide",
    "without",
    "wipe",
    "removing",
    "get rid of",
    "take out",
    "take away",
    "cut out",
    "cover up",
    "clean up",
    "clear up",
];
/// Words that begin a removal only where a thing follows: "clean the wall", not "clean shaven".
const REMOVE_A_THING: [&str; 3] = ["clean", "clear", "no"];
const DETERMINERS: [&str; 14] = [
    "the", "this", "that", "it", "these", "those", "all", "my", "his", "her", "its", "their",
    "off", "away",
];
const VANISH: [&str; 5] = ["disappear", "vanish", "gone", "go away", "invisible"];
const RESTORE: [&str; 9] =
    ["restore", "repair", "mend", "fix", "heal", "unscratch", "retouch", "recover", "reconstruct"];
const ENHANCE: [&str; 10] = [
    "enhance", "sharpen", "improve", "upscale", "denoise", "deblur", "unblur", "refine", "clarify",
    "upgrade",
];
const ADD: [&str; 8] = ["add", "put", "insert", "place", "draw", "paint", "give", "include"];
/// Verbs of an edit: what follows them is no wish of its own.
const CHANGE: [&str; 8] =
    ["replace", "change", "turn", "make", "swap", "recolor", "recolour", "convert"];

/// What is wrong with a whole picture, not a thing in it: to remove it is to make the rest clearer.
const DEFECTS: [&str; 11] = [
    "noise",
    "grain",
    "blur",
    "blurriness",
    "haze",
    "artifacts",
    "artefacts",
    "pixelation",
    "jpeg",
    "photo",
    "picture",
];

/// Words that mean a mode wherever they stand, unless the prompt begins with a verb of another.
const RESTORE_ANYWHERE: [&str; 9] = [
    "scratch",
    "scratches",
    "scratched",
    "damage",
    "damaged",
    "old photo",
    "tears in",
    "creases",
    "a crease",
];
const ENHANCE_ANYWHERE: [&str; 8] = [
    "more detail",
    "more details",
    "sharper",
    "clearer",
    "crisper",
    "higher quality",
    "better quality",
    "higher resolution",
];

/// Words that put something in the place of what a verb takes away.
const INSTEAD: [&str; 8] = [
    "replace",
    "replacing",
    "instead",
    "and add",
    "and put",
    "and paint",
    "and draw",
    "and insert",
];

/// Courtesy, which is no part of the wish.
const COURTESY: [&str; 18] = [
    "please", "pls", "can", "could", "you", "just", "now", "kindly", "i", "i'd", "want", "would",
    "like", "need", "to", "help", "me", "let's",
];

/// Why a prompt is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Nothing but space.
    #[error("Prompt is required")]
    Missing,
    /// Longer than [`MAX_PROMPT_LENGTH`].
    #[error("Prompt is too long, maximum of {MAX_PROMPT_LENGTH} letters is allowed")]
    TooLong,
}

/// What somebody wants, in their words, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    text: String,
    mode: FixMode,
}

impl Prompt {
    /// Reads a prompt of 1 to [`MAX_PROMPT_LENGTH`] characters; space around it is not counted, and
    /// characters that cannot be seen or stored (controls) become spaces.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn read(text: &str) -> Result<Self, PromptError> {
        let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = visible.trim();
        match text.chars().count() {
            0 => Err(PromptError::Missing),
            length if length > MAX_PROMPT_LENGTH => Err(PromptError::TooLong),
            _ => Ok(Self { text: text.to_owned(), mode: mode_of(text) }),
        }
    }

    /// The words, as they were written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What they mean.
    pub const fn mode(&self) -> FixMode {
        self.mode
    }

    /// What the masked area shall show, for models that follow captions rather than instructions: the
    /// prompt without its verb, and of a replacement only what comes instead.
    ///
    /// *"Replace the cup with a red flower"* is *"a red flower"*.
    pub fn caption(&self) -> String {
        let words = words_of(&self.text);
        let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
        let start = courtesies(&lower);
        let (words, lower) = (&words[start..], &lower[start..]);
        // "Remove the cup and replace it with a flower" is a replacement that begins later.
        let from = match lower.iter().position(|word| word == "replace" || word == "replacing") {
            Some(at) if leading(lower, &REMOVE).is_some() => at,
            _ => 0,
        };
        let after = |start: usize| words.get(start..).unwrap_or_default().join(" ");
        let instead: &[&str] = match lower.get(from).map(String::as_str) {
            Some("replace" | "replacing") => &["with", "by"],
            Some("swap") => &["for", "with"],
            Some("change" | "turn" | "convert") => &["into", "to"],
            _ => &[],
        };
        let put = instead
            .iter()
            .find_map(|word| lower[from..].iter().rposition(|own| own == word))
            .map(|at| after(from + at + 1));
        let rest = put.or_else(|| {
            leading(lower, &ADD).or_else(|| leading(lower, &["make", "it"])).map(after)
        });
        let rest = rest.map(|rest| strip_lead_in(&rest)).filter(|rest| !rest.is_empty());
        rest.unwrap_or_else(|| after(0))
    }

    /// The words that `vocabulary` lacks, in lower case, each once. Numbers and signs count as words.
    pub fn words_outside(&self, vocabulary: &[String]) -> Vec<String> {
        let mut outside = Vec::new();
        for word in words_of(&self.caption()) {
            let word = word.to_lowercase();
            if !vocabulary.contains(&word) && !outside.contains(&word) {
                outside.push(word);
            }
        }
        outside
    }
}

/// "it red" and "here a cup" begin with words that are no part of a caption.
fn strip_lead_in(text: &str) -> String {
    let words: Vec<_> = text.split(' ').collect();
    let skip = words
        .iter()
        .take_while(|word| {
            ["it", "this", "that", "here", "in", "there"].contains(&word.to_lowercase().as_str())
        })
        .count();
    words[skip..].join(" ")
}

/// The words of a text, without the marks around them.
fn words_of(text: &str) -> Vec<&str> {
    text.split(|c: char| c.is_whitespace() || ",.;:!?\"“”()".contains(c))
        .filter(|word| !word.is_empty())
        .collect()
}

/// How many words the longest of `phrases` takes that these words begin with.
fn leading(words: &[String], phrases: &[&str]) -> Option<usize> {
    phrases
        .iter()
        .map(|phrase| phrase.split(' ').collect::<Vec<_>>())
        .filter(|phrase| {
            words.len() >= phrase.len() && words.iter().zip(phrase).all(|(a, b)| a == b)
        })
        .map(|phrase| phrase.len())
        .max()
}

fn contains(words: &[String], phrases: &[&str]) -> bool {
    (0..words.len()).any(|start| leading(&words[start..], phrases).is_some())
}

/// How many words of courtesy a prompt begins with; all of them may be no more than that.
fn courtesies(words: &[String]) -> usize {
    let polite = words.iter().take_while(|word| COURTESY.contains(&word.as_str())).count();
    if polite == words.len() { 0 } else { polite }
}

fn mode_of(text: &str) -> FixMode {
    let words: Vec<_> = words_of(text).into_iter().map(str::to_lowercase).collect();
    let words = &words[courtesies(&words)..];
    let begins = |phrases: &[&str]| leading(words, phrases).is_some();
    let has = |phrases: &[&str]| contains(words, phrases);
    let takes_a_thing = begins(&REMOVE_A_THING)
        && words.get(1).is_none_or(|next| DETERMINERS.contains(&next.as_str()));
    let takes_away = begins(&REMOVE) || takes_a_thing;
    if takes_away && has(&INSTEAD) {
        // "Remove the cup and put a flower there" wants a flower.
        return FixMode::Edit;
    }
    if takes_away && has(&RESTORE_ANYWHERE) {
        return FixMode::Restore;
    }
    if takes_away && has(&DEFECTS) || has(&ENHANCE_ANYWHERE) {
        return FixMode::Enhance;
    }
    if takes_away || begins(&["make", "let"]) && has(&VANISH) {
        return FixMode::Remove;
    }
    if begins(&ADD) {
        return FixMode::Add;
    }
    if begins(&RESTORE) {
        return FixMode::Restore;
    }
    if begins(&ENHANCE) {
        return FixMode::Enhance;
    }
    if !begins(&CHANGE) && has(&RESTORE_ANYWHERE) {
        return FixMode::Restore;
    }
    FixMode::Edit
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Prompt {
        Prompt::read(text).expect("a prompt")
    }

    #[test]
    fn the_table_says_what_prompts_mean() {
        use FixMode::{Add, Edit, Enhance, Remove, Restore};
        for (text, mode) in [
            ("remove the object", Remove),
            ("Remove the man in the background!", Remove),
            ("please erase this", Remove),
            ("get rid of the wires", Remove),
            ("clean up the wall", Remove),
            ("without the cup", Remove),
            ("Remove the cup and replace it with a flower", Edit),
            ("replace the cup with a red flower", Edit),
            ("a red circle", Edit),
            ("make it blue", Edit),
            ("notice board", Edit),
            ("add a hat", Add),
            ("Put a cup on the table", Add),
            ("remove the man with the hat", Remove),
            ("remove the car by the road", Remove),
            ("I want to remove the car", Remove),
            ("help me remove this pls", Remove),
            ("make it disappear", Remove),
            ("clean the wall", Remove),
            ("hide", Remove),
            ("remove", Remove),
            ("remove background people", Remove),
            ("clear sky", Edit),
            ("clean shaven face", Edit),
            ("no parking sign", Edit),
            ("cover with snow", Edit),
            ("remove noise", Enhance),
            ("get rid of the grain", Enhance),
            ("clean up the photo", Enhance),
            ("remove the scratches", Restore),
            ("add more detail", Enhance),
            ("make it clearer", Enhance),
            ("a tear on her cheek", Edit),
            ("give him a hat", Add),
            ("paint the wall red", Add),
            ("please", Edit),
            ("restore the old photo", Restore),
            ("fix the scratches", Restore),
            ("scratches on the face", Restore),
            ("enhance", Enhance),
            ("sharpen the eyes", Enhance),
            ("more details", Enhance),
            ("could you please improve this", Enhance),
            ("一只猫", Edit),
            ("🐱", Edit),
            ("أزل الكوب", Edit),
        ] {
            assert_eq!(prompt(text).mode(), mode, "{text}");
        }
    }

    #[test]
    fn captions_are_what_is_to_be_seen() {
        for (text, caption) in [
            ("replace the cup with a red flower", "a red flower"),
            ("turn it into gold", "gold"),
            ("change the colour to blue", "blue"),
            ("add a hat", "a hat"),
            ("make it blue", "blue"),
            ("a red circle", "a red circle"),
            ("please make it red", "red"),
            ("please add a hat", "a hat"),
            ("could you change it to a cat?", "a cat"),
            ("replace the man standing by the door with a tree", "a tree"),
            ("Remove the cup and replace it with a flower", "a flower"),
            ("replace it", "replace it"),
            ("add", "add"),
        ] {
            assert_eq!(prompt(text).caption(), caption, "{text}");
        }
    }

    #[test]
    fn prompts_have_one_to_five_hundred_characters() {
        assert_eq!(Prompt::read(" \n "), Err(PromptError::Missing));
        assert_eq!(Prompt::read(&"ж".repeat(501)), Err(PromptError::TooLong));
        assert_eq!(prompt(&format!("  {}  ", "ж".repeat(500))).text().chars().count(), 500);
        assert_eq!(prompt("a\u{0}b").text(), "a b");
    }

    #[test]
    fn what_cannot_be_followed_is_refused_with_what_can() {
        let offer = Offer { modes: vec![FixMode::Remove, FixMode::Restore], ..Offer::default() };
        assert_eq!(offer.check(&prompt("remove it")), Ok(()));
        let refused = offer.check(&prompt("a castle")).unwrap_err();
        assert!(refused.contains("Try “remove it” or “restore”."), "{refused}");
        assert!(refused.contains("not been charged"), "{refused}");
        assert!(refused.contains("models/README.md"), "{refused}");
        let demo = Offer {
            modes: FixMode::ALL.to_vec(),
            vocabulary: Some(["a", "red", "circle", "with", "it"].map(str::to_owned).to_vec()),
            is_demo: true,
        };
        assert_eq!(demo.check(&prompt("a red circle")), Ok(()));
        assert_eq!(demo.check(&prompt("Make it RED!")), Ok(()));
        assert_eq!(demo.check(&prompt("remove the castle")), Ok(()));
        let refused = demo.check(&prompt("a castle in the sky")).unwrap_err();
        assert!(refused.contains("“castle”, “in”, “the”, “sky”"), "{refused}");
        assert!(Offer::default().check(&prompt("remove")).is_err());
    }
}
