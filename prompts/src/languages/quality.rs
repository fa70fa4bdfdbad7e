//! Enhancements that show only in a verb and its object together: *clean the photo*, *reduce the noise*, *make it clear*.

use super::english;
use super::verb::Verb;
use super::vocabulary::LANGUAGES;
use super::words::Words;
use crate::mode::Act;
use crate::text::leading;

/// Words that end the name of a thing.
const PREPOSITIONS: [&str; 31] = [
    "of", "in", "on", "at", "from", "for", "by", "with", "around", "behind", "so", "de", "del",
    "d'", "da", "do", "das", "dos", "du", "des", "en", "no", "na", "dans", "sur", "im", "von",
    "vom", "auf", "para", "pour",
];

/// Words that may follow the whole picture: "(clean up this photo) of my dog". "Of the tourists" names what is to be
/// cleaned away.
const AFTER_WHOLE: [&str; 11] =
    ["for", "so", "of a", "of an", "of me", "of my", "of us", "of our", "of her", "of his", "para"];

/// What needs a restoration.
const OLD: [&str; 11] = [
    "old", "alt", "alte", "alten", "altes", "vieja", "antigua", "vieille", "ancienne", "velha",
    "antiga",
];

/// Words before the name of a look: "(make it) really (sharp)", "(turn it) into (4k)".
const BEFORE_LOOK: [&str; 12] =
    ["es", "look", "very", "really", "super", "ultra", "full", "into", "to", "in", "en", "more"];

/// What people want to recognize in a picture.
const READ: [&str; 12] = [
    "text", "writing", "letters", "words", "face", "schrift", "gesicht", "texto", "cara", "rosto",
    "texte", "visage",
];

/// Returns the verb of a part that mends the whole picture or its quality.
pub(super) fn verb_of(part: &[String]) -> Option<Verb> {
    if LANGUAGES.iter().any(|language| cleans(language, part)) {
        let act = if is_worn(part) { Act::Restore } else { Act::Enhance };
        return Some(Verb::split(act));
    }
    LANGUAGES.iter().any(|language| adjusts(language, part)).then_some(Verb::split(Act::Enhance))
}

/// Returns true for what announces a removal: "clean up the photo (and remove the man)", "Foto säubern (und Kratzer entfernen)".
pub(super) fn is_cleaning(part: &[String]) -> bool {
    LANGUAGES.iter().any(|language| object_of(part, language, language.clean).is_some())
}

/// Returns true if a part mentions damage or age.
pub(super) fn is_worn(part: &[String]) -> bool {
    english::mentions_damage(part) || part.iter().any(|word| OLD.contains(&word.as_str()))
}

/// Recognizes "clean up this old photo", which is the whole picture, and "clear up the blurry text", but neither "clean the
/// picture frame" nor "clean up the wall in the photo".
fn cleans(language: &Words, part: &[String]) -> bool {
    let Some(object) = object_of(part, language, language.clean) else { return false };
    let determiners = language.determiners_before(object);
    let named = &object[determiners..];
    let end = named.iter().position(|word| PREPOSITIONS.contains(&word.as_str()));
    let (name, after) = named.split_at(end.unwrap_or(named.len()));
    // "Clean this photo up" and "limpia la foto vieja".
    let is_last = |word: &&String| *word == "up" || OLD.contains(&word.as_str());
    let name = &name[..name.len() - name.iter().rev().take_while(is_last).count()];
    let Some((last, adjectives)) = name.split_last() else { return false };
    let is_of = |list: &[&str], word: &str| list.contains(&word);
    // "Background image" without an article is what the picture shows.
    let is_one = adjectives.is_empty() || determiners > 0 || is_worn(name);
    let is_whole = is_of(language.whole, last)
        && adjectives.len() <= 2
        && is_one
        && (after.is_empty() || leading(after, &AFTER_WHOLE).is_some());
    is_whole
        || is_of(language.quality, last)
        || name.iter().any(|word| is_of(language.blurred, word))
}

/// Recognizes "increase the image quality", "reduce noise" and "Rauschen reduzieren", but not "reduce the size of the grain".
fn adjusts(language: &Words, part: &[String]) -> bool {
    let is_about = |verbs, nouns| {
        object_of(part, language, verbs).is_some_and(|object| names(language, object, nouns))
    };
    is_about(language.raise, language.quality) || is_about(language.lower, language.defects)
}

/// Returns true if an object begins with one of `nouns`, after a determiner and at most two other words: "the overall image
/// quality".
pub(super) fn names(language: &Words, object: &[String], nouns: &[&str]) -> bool {
    let last = language.determiners_before(object) + 2;
    (0..=last.min(object.len())).any(|at| language.leading(&object[at..], nouns).is_some())
        && !language.contains(object, language.things)
}

/// Returns what follows one of `verbs`, or precedes a German infinitive.
fn object_of<'a>(part: &'a [String], language: &Words, verbs: &[&str]) -> Option<&'a [String]> {
    if let Some(length) = language.leading(part, verbs) {
        return Some(&part[length..]);
    }
    let (last, object) = part.split_last()?;
    let is_infinitive = last.ends_with("en") || last.ends_with("rn");
    (is_infinitive && verbs.contains(&last.as_str())).then_some(object)
}

/// Recognizes "(make) the photo clear", "(make) it 4k" and "(mach) die Schrift lesbar", but neither "(make) the sky clear" nor
/// "(make) it clear blue".
pub(super) fn gets_sharp(object: &[String]) -> bool {
    LANGUAGES.iter().any(|language| {
        let look = (0..object.len())
            .find(|at| language.leading(&object[*at..], language.sharp) == Some(object.len() - at));
        look.is_some_and(|at| {
            object[..at].iter().all(|word| {
                let word = word.as_str();
                [language.determiners, language.whole, language.sharp, &BEFORE_LOOK, &READ]
                    .iter()
                    .any(|list| list.contains(&word))
            })
        })
    })
}
