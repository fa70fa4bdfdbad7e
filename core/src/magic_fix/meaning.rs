//! The English words that distinguish the modes, and the caption in a prompt.

use retouch_catalog::FixMode;

/// Words at the beginning that make a prompt a removal.
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
/// Words that begin a removal only before a thing: "clean the wall", not "clean shaven".
const REMOVE_A_THING: [&str; 3] = ["clean", "clear", "no"];
const DETERMINERS: [&str; 14] = [
    "the", "this", "that", "it", "these", "those", "all", "my", "his", "her", "its", "their",
    "off", "away",
];
/// Words before a thing that is in the picture already.
const DEFINITE: [&str; 12] =
    ["the", "this", "that", "these", "those", "his", "her", "its", "their", "my", "your", "our"];
const VANISH: [&str; 5] = ["disappear", "vanish", "gone", "go away", "invisible"];
const RESTORE: [&str; 9] =
    ["restore", "repair", "mend", "fix", "heal", "unscratch", "retouch", "recover", "reconstruct"];
const ENHANCE: [&str; 10] = [
    "enhance", "sharpen", "improve", "upscale", "denoise", "deblur", "unblur", "refine", "clarify",
    "upgrade",
];
const ADD: [&str; 8] = ["add", "put", "insert", "place", "draw", "paint", "give", "include"];
/// Verbs of an edit. Words for damage after them do not make it a restoration.
const CHANGE: [&str; 8] =
    ["replace", "change", "turn", "make", "swap", "recolor", "recolour", "convert"];

/// Defects of the whole picture rather than things in it: removing them is an enhancement.
const DEFECTS: [&str; 9] = [
    "noise",
    "grain",
    "blur",
    "blurriness",
    "haze",
    "artifacts",
    "artefacts",
    "pixelation",
    "jpeg",
];
/// Words that begin an enhancement before a word for the whole picture.
const CLEAN: [&str; 4] = ["clean", "clear", "clean up", "clear up"];
const WHOLE: [&str; 5] = ["photo", "picture", "image", "photograph", "pic"];

/// Words that mean a mode at any position, unless the prompt begins with a verb of another mode.
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

/// Words that turn a removal into a replacement.
const INSTEAD: [&str; 3] = ["replace", "replacing", "instead"];
const AND_ADD: [&str; 5] = ["and add", "and put", "and paint", "and draw", "and insert"];

/// Courtesies, which are ignored at the beginning.
const COURTESY: [&str; 18] = [
    "please", "pls", "can", "could", "you", "just", "now", "kindly", "i", "i'd", "want", "would",
    "like", "need", "to", "help", "me", "let's",
];

/// Returns the caption in a prompt; see [`super::Prompt::caption`].
pub(super) fn caption_of(text: &str) -> String {
    let words = words_of(text);
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    let start = courtesies(&lower);
    let (words, lower) = (&words[start..], &lower[start..]);
    let from = if leading(lower, &REMOVE).is_some() { second_request(lower) } else { 0 };
    let after = |start: usize| words.get(start..).unwrap_or_default().join(" ");
    let separators: &[&str] = match lower.get(from).map(String::as_str) {
        Some("replace" | "replacing") => &["with", "by"],
        Some("swap") => &["for", "with"],
        Some("change" | "turn" | "convert") => &["into", "to"],
        _ => &[],
    };
    let separates = |at: &usize| separators.contains(&lower[*at].as_str());
    // "The man with the hat" is one thing. A new thing is seldom definite.
    let is_definite =
        |at: usize| lower.get(at).is_some_and(|word| DEFINITE.contains(&word.as_str()));
    let replacement = (from..lower.len())
        .find(|at| separates(at) && !is_definite(at + 1))
        .or_else(|| (from..lower.len()).rfind(separates))
        .map(|at| after(at + 1));
    let rest = replacement.or_else(|| {
        let request = &lower[from..];
        let verb = leading(request, &ADD).or_else(|| leading(request, &["make", "it"]))?;
        Some(after(from + verb))
    });
    let rest = rest.map(|rest| strip_places(&rest)).filter(|rest| !rest.is_empty());
    rest.unwrap_or_else(|| after(0))
}

/// Returns the index of the request that follows a removal, or 0: "remove the cup and replace it with a flower",
/// "remove the cup and put a flower there".
fn second_request(words: &[String]) -> usize {
    let replaces = words.iter().position(|word| word == "replace" || word == "replacing");
    let adds = || {
        (1..words.len()).find(|&at| words[at - 1] == "and" && leading(&words[at..], &ADD).is_some())
    };
    replaces.or_else(adds).unwrap_or(0)
}

/// Strips words that only name a place: "it red", "here a cup", "a cup there".
fn strip_places(text: &str) -> String {
    let is = |word: &str, places: &[&str]| places.contains(&word.to_lowercase().as_str());
    let words: Vec<_> = text.split(' ').collect();
    let skip = words
        .iter()
        .take_while(|word| is(word, &["it", "this", "that", "here", "in", "there"]))
        .count();
    let rest = &words[skip..];
    let last = rest.iter().rev().take_while(|word| is(word, &["here", "there", "instead"])).count();
    rest[..rest.len() - last].join(" ")
}

/// Splits a text into words without punctuation.
pub(super) fn words_of(text: &str) -> Vec<&str> {
    text.split(|c: char| c.is_whitespace() || ",.;:!?¿¡…\"“”„«»()".contains(c))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the length, in words, of the longest of `phrases` that `words` begins with.
pub(super) fn leading(words: &[String], phrases: &[&str]) -> Option<usize> {
    phrases
        .iter()
        .map(|phrase| phrase.split(' ').collect::<Vec<_>>())
        .filter(|phrase| {
            words.len() >= phrase.len() && words.iter().zip(phrase).all(|(a, b)| a == b)
        })
        .map(|phrase| phrase.len())
        .max()
}

pub(super) fn contains(words: &[String], phrases: &[&str]) -> bool {
    (0..words.len()).any(|start| leading(&words[start..], phrases).is_some())
}

/// Returns the number of courtesies at the beginning; 0 if the prompt consists of nothing else.
fn courtesies(words: &[String]) -> usize {
    let polite = words.iter().take_while(|word| COURTESY.contains(&word.as_str())).count();
    if polite == words.len() { 0 } else { polite }
}

/// Returns true if the prompt cleans up the whole picture ("clean up this photo") and not a thing in it ("clean the
/// picture frame").
fn cleans_the_whole(words: &[String]) -> bool {
    let Some(verb) = leading(words, &CLEAN) else { return false };
    let rest = &words[verb..];
    let determiners = rest.iter().take_while(|word| DETERMINERS.contains(&word.as_str())).count();
    let what = &rest[determiners..];
    leading(what, &WHOLE).is_some() && what.get(1).is_none_or(|next| next == "up")
}

/// Returns the mode that an English prompt means, by the table in [`super`].
pub(super) fn mode_of(text: &str) -> FixMode {
    let words: Vec<_> = words_of(text).into_iter().map(str::to_lowercase).collect();
    let words = &words[courtesies(&words)..];
    let begins = |phrases: &[&str]| leading(words, phrases).is_some();
    let has = |phrases: &[&str]| contains(words, phrases);
    let takes_a_thing = begins(&REMOVE_A_THING)
        && words.get(1).is_none_or(|next| DETERMINERS.contains(&next.as_str()));
    let takes_away = begins(&REMOVE) || takes_a_thing;
    let adds_details = (has(&RESTORE_ANYWHERE) || has(&DEFECTS)) && has(&ENHANCE_ANYWHERE);
    if takes_away && (has(&INSTEAD) || has(&AND_ADD) && !adds_details) {
        // "Remove the cup and put a flower there" asks for a flower.
        return FixMode::Edit;
    }
    if takes_away && has(&RESTORE_ANYWHERE) {
        return FixMode::Restore;
    }
    if takes_away && has(&DEFECTS) || cleans_the_whole(words) || has(&ENHANCE_ANYWHERE) {
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
