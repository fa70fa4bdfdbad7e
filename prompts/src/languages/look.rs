//! Words for how a removal looks anyway, such as *blend* or *like the original*.

use super::verb::Verb;
use super::vocabulary::LANGUAGES;
use super::words::Words;
use crate::text::contains;

/// Words that say that a thing is new, or what another becomes.
const NEW: [&str; 4] = ["into", "to", "en", "zu"];

/// What says that a request changes nothing, or that a removed thing leaves no trace.
const LIKE_BEFORE: [&str; 21] = [
    "blend",
    "it match",
    "never",
    "nothing",
    "nobody",
    "no one",
    "no other",
    "no change",
    "no changes",
    "not there",
    "wasn't there",
    "like it did before",
    "like the original",
    "nie",
    "nichts",
    "nunca",
    "nada",
    "jamais",
    "rien",
    "so als",
    "so dass",
];

/// Words that may follow the name of a look: "(make it look natural) again".
const AFTER_LOOK: [&str; 23] = [
    "again", "too", "looking", "possible", "in", "on", "at", "as", "so", "for", "where", "with",
    "wieder", "aussieht", "aussehen", "wie", "im", "mit", "posible", "con", "dans", "avec",
    "possivel",
];

/// Recognizes a change to a look that a removal has anyway: "make it look natural", "mach den Hintergrund passend", "make it
/// look like he was never there". "Make her eyes a natural blue" and "turn it into a clean studio" want new things.
pub(super) fn is_look(verb: &Verb, words: &[String]) -> bool {
    let end = words.len() - usize::from(verb.is_last);
    let object = &words[verb.length.min(end)..end];
    let has = |list: &[&str]| object.iter().any(|word| list.contains(&word.as_str()));
    let is_end = |at: usize| object.get(at).is_none_or(|word| AFTER_LOOK.contains(&word.as_str()));
    let is_natural = |language: &Words| {
        let is_verbs = verb.length == 0 || language.leading(words, language.change).is_some();
        let is_look = |at: usize| language.natural.contains(&object[at].as_str()) && is_end(at + 1);
        is_verbs && (0..object.len()).any(is_look) && !has(language.articles)
    };
    contains(object, &LIKE_BEFORE) || LANGUAGES.iter().any(is_natural) && !has(&NEW)
}
