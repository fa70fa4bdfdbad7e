//! German verbs: infinitives at the end, verbs in two parts, and negations after the verb.

use super::verb::Verb;
use super::vocabulary::GERMAN;
use super::words::LISTS;
use crate::mode::Act;
use crate::text::{contains, folded, words_of};

const ARTICLES: [&str; 9] =
    ["das", "den", "die", "dem", "der", "diese", "diesen", "dieses", "dieser"];

/// Returns the infinitive at the end, "das Auto entfernen", or the verb of "dass du das Auto entfernst", but not "beim
/// Entfernen".
pub(super) fn infinitive(part: &[String]) -> Option<Verb> {
    let (last, before) = part.split_last()?;
    let is_noun = |before: &String| ["beim", "zum", "am", "zu", "nicht"].contains(&before.as_str());
    let stem = last.strip_suffix("st").filter(|_| part[0] == "dass");
    if before.last().is_some_and(is_noun) || !last.ends_with('n') && stem.is_none() {
        return None;
    }
    let infinitive = without_zu(last);
    let is_of_stem = |verb: &str| {
        stem.and_then(|stem| verb.strip_prefix(stem)).is_some_and(|end| end == "en" || end == "n")
    };
    let is_verb = |list: &[&str]| {
        list.contains(&last.as_str())
            || list.contains(&&*infinitive)
            || list.iter().any(|verb| is_of_stem(verb))
    };
    let (act, _) = LISTS.iter().find(|(_, list)| is_verb(list(&GERMAN)))?;
    Some(Verb { act: *act, length: 0, is_last: true })
}

/// Returns a verb in two parts without the "zu" between them: "hinzufuegen" of "hinzuzufuegen".
fn without_zu(verb: &str) -> String {
    verb.replacen("zu", "", 1)
}

/// Recognizes "ohne das Gesicht zu verändern" and "ohne etwas hinzuzufügen".
pub(super) fn is_condition(part: &[String]) -> bool {
    let [without, .., before, last] = part else { return false };
    let has_zu =
        |list: &[&str]| !list.contains(&last.as_str()) && list.contains(&&*without_zu(last));
    without == "ohne" && (before == "zu" || LISTS.iter().any(|(_, list)| has_zu(list(&GERMAN))))
}

/// Recognizes "ohne Brille lächelnd", which describes a person, but not "ohne Leute am Abend".
pub(super) fn describes(text: &str, words: &[String]) -> bool {
    let [without, _, .., last] = words else { return false };
    let is_participle = ["end", "elnd", "ernd"].iter().any(|ending| last.ends_with(ending));
    // Nouns have a capital letter.
    let is_noun = || {
        !words_of(text)
            .iter()
            .any(|word| word.starts_with(char::is_lowercase) && folded(word) == *last)
    };
    without == "ohne" && is_participle && !is_noun()
}

/// Recognizes a verb whose parts stand apart: "mach das Auto weg", "lass den Mann verschwinden", "stelle das Foto
/// wieder her", "leg eine Decke hin". "Weg" is also a path, and "lass den Hund raus" lets the dog out. `is_whole` says
/// whether the prompt has no other part.
pub(super) fn split_verb(text: &str, part: &[String], is_whole: bool) -> Option<Verb> {
    if is_gone(text, part, is_whole) || takes_out(part) {
        return Some(Verb::split(Act::Remove));
    }
    let [verb, .., before, last] = part else { return None };
    let begins = |verbs: &[&str]| verbs.contains(&verb.as_str());
    if begins(&["stell", "stelle", "stellen"]) {
        let act = if contains(part, &["wieder her"]) {
            Act::Restore
        } else if contains(part, &["sicher", "her"]) {
            return None;
        } else {
            Act::Add
        };
        return Some(Verb::split(act));
    }
    let is_imperative = !ARTICLES.contains(&verb.as_str());
    if is_imperative && ["hin", "hinzu"].contains(&last.as_str()) && !begins_a_removal(part) {
        return Some(Verb { act: Act::Add, length: 1, is_last: false });
    }
    let is_article =
        ["ein", "einen", "einem", "einer", "den", "dem", "der"].contains(&before.as_str());
    let goes = match last.as_str() {
        "weg" => words_of(text).contains(&"weg") && !is_article,
        // "Hol das Beste raus" asks for an enhancement.
        "raus" => !begins(&["lass", "lasse"]) && (before == "da" || !begins(&["hol", "hole"])),
        "verschwinden" => true,
        _ => false,
    };
    let makes = [
        "mach",
        "mache",
        "lass",
        "lasse",
        "nimm",
        "hol",
        "hole",
        "retuschier",
        "retuschiere",
        "radier",
        "radiere",
        "schneid",
        "schneide",
    ];
    (goes && begins(&makes)).then_some(Verb::split(Act::Remove))
}

/// Recognizes "das Auto soll weg", "es muss entfernt werden", "den Text weg machen", "(ich will,) dass es verschwindet", and
/// "Logo raus", but none of "weit weg", "ein Weg", and "Zunge raus".
fn is_gone(text: &str, part: &[String], is_whole: bool) -> bool {
    const NO_NOUNS: [&str; 14] = [
        "weit", "geh", "ganz", "lauf", "renn", "komm", "kein", "keinen", "zunge", "arm", "arme",
        "kopf", "bauch", "brust",
    ];
    const REMOVED: [&str; 4] = ["entfernt", "geloescht", "wegretuschiert", "ausradiert"];
    let [start @ .., before, last] = part else { return false };
    let is_one_of = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let is_article = |word: &String| is_one_of(word, GERMAN.articles) || is_one_of(word, &ARTICLES);
    let is_away = |word: &String, before: Option<&String>| {
        word == "raus"
            || word == "weg" && words_of(text).contains(&"weg") && !before.is_some_and(is_article)
    };
    let must_go = || {
        is_away(last, Some(before))
            || last == "verschwinden"
            || last == "werden" && is_one_of(before, &REMOVED)
    };
    let is_obliged = ["soll", "sollen", "sollte", "sollten", "muss", "muessen"];
    let is_noun = || {
        text.starts_with(char::is_uppercase)
            && !is_one_of(before, GERMAN.determiners)
            && !is_one_of(before, GERMAN.articles)
            && !is_one_of(before, &NO_NOUNS)
    };
    let is_denied = part.iter().rev().take(3).any(|word| word == "nicht");
    let asks = contains(part, &is_obliged) && must_go()
        || part[0] == "dass" && last == "verschwindet"
        || is_away(before, start.last())
            && is_one_of(last, &["machen", "nehmen", "schneiden", "retuschieren"])
        || is_whole && start.is_empty() && is_away(last, Some(before)) && is_noun();
    asks && !is_denied
}

/// Recognizes "nimm den Mann aus dem Bild", but not "nimm die Farbe aus dem Bild".
fn takes_out(part: &[String]) -> bool {
    ["nimm", "schneid", "schneide"].contains(&part[0].as_str())
        && contains(part, &["aus dem bild", "aus dem foto"])
        && !contains(part, &["nicht", "farbe", "farben"])
}

fn begins_a_removal(part: &[String]) -> bool {
    GERMAN.leading(part, GERMAN.remove).is_some()
}

/// Recognizes "entferne das Auto nicht", but neither "entferne alles was nicht passt" nor "entferne nicht nur das Auto".
pub(super) fn is_negated(part: &[String]) -> bool {
    let is_one_of =
        |word: Option<&str>, list: &[&str]| word.is_some_and(|word| list.contains(&word));
    let words: Vec<_> = part
        .iter()
        .map(String::as_str)
        .filter(|word| !["bitte", "sie", "du", "mal", "auf"].contains(word))
        .collect();
    let ends_in_removal = is_one_of(words.last().copied(), GERMAN.remove);
    words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).map(|before| words[before]);
        let next = words.get(at + 1).copied();
        let is_first = at <= 1;
        match *word {
            "nichts" => is_first,
            "nicht" | "nie" | "niemals" => {
                let is_before_infinitive = ends_in_removal
                    && !is_one_of(before, &["der", "die", "das", "den", "was"])
                    && !is_one_of(next, &["einfach", "nur", "auch"]);
                next.is_none()
                    || is_one_of(next, &["raus", "weg", "verschwinden", "wieder"])
                    || is_first && is_one_of(next, &ARTICLES)
                    || is_before_infinitive
            }
            // "Auf keinen Fall" too.
            word => is_first && word.starts_with("kein"),
        }
    })
}
