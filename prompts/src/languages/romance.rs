//! Spanish, French and Portuguese phrases that need more than a verb at the beginning to recognize.

use super::verb::Verb;
use super::vocabulary::{FRENCH, SPANISH};
use super::words::LISTS;
use crate::mode::Act;
use crate::text::{contains, leading};

/// Recognizes verbs with words between their parts, and lights, which are turned off: "apague a luz (da sala)". "Apague a
/// luz do poste" is a removal.
pub(super) fn verb_of(part: &[String]) -> Option<Verb> {
    let begins = |verbs: &[&str]| verbs.contains(&part[0].as_str());
    if begins(&["rends", "rendez", "rendre"]) && contains(part, &["plus net", "plus nets"]) {
        return Some(Verb::split(Act::Enhance));
    }
    let vanishes = ["desaparezca", "desaparezcan", "desaparecer", "sumir"];
    if begins(&["haz", "haga", "faca", "faz"])
        && part.last().is_some_and(|last| vanishes.contains(&last.as_str()))
        && !contains(part, &["que no", "que nao"])
    {
        return Some(Verb::split(Act::Remove));
    }
    if leaves_a_look(part) {
        return Some(Verb::split(Act::Change));
    }
    if let Some(verb) = french_infinitive(part) {
        return Some(verb);
    }
    let [verb, _, light, place @ ..] = part else { return None };
    let is_room = |word: &String| ["quarto", "sala", "cozinha", "casa"].contains(&word.as_str());
    let is_light = verb.starts_with("apag")
        && ["luz", "luzes", "vela", "velas"].contains(&light.as_str())
        && (place.is_empty() || place.get(1).is_some_and(is_room));
    is_light.then_some(Verb::split(Act::Change))
}

/// Recognizes "deixe (o fundo) branco" and "déjalo blanco", but neither "deixe o cachorro" nor "deixe assim": that stays.
fn leaves_a_look(part: &[String]) -> bool {
    const STAYS: [&str; 7] = ["asi", "assim", "intacto", "intacta", "tudo", "isso", "ahi"];
    const LEAVES: [&str; 11] = [
        "dejalo",
        "dejala",
        "dejarlo",
        "dejarla",
        "deja el fondo",
        "dejar el fondo",
        "deixe",
        "deixar",
        "deixe o fundo",
        "deixa",
        "deixa o fundo",
    ];
    part.split_last().is_some_and(|(look, verb)| {
        leading(verb, &LEAVES) == Some(verb.len()) && !STAYS.contains(&look.as_str())
    })
}

/// Recognizes a French infinitive after its pronoun: "(et) le rendre blanc".
fn french_infinitive(part: &[String]) -> Option<Verb> {
    let [pronoun, verb, ..] = part else { return None };
    let is_infinitive = verb.ends_with('r') || verb.ends_with("re");
    if !is_infinitive || !["le", "la", "les", "l'"].contains(&pronoun.as_str()) {
        return None;
    }
    let (act, _) =
        LISTS.iter().find(|(_, list)| FRENCH.leading(&part[1..], list(&FRENCH)).is_some())?;
    Some(Verb::split(*act))
}

/// Returns a Spanish verb without the pronoun at its end: "quita" of "quítalo".
pub(super) fn without_pronoun(word: &str) -> &str {
    let is_verb = |word: &str| {
        LISTS.iter().any(|(_, list)| list(&SPANISH).contains(&word))
            || SPANISH.instead.contains(&word)
    };
    let verb = || {
        let pronouns =
            ["melos", "melas", "melo", "mela", "los", "las", "les", "lo", "la", "le", "me"];
        pronouns.iter().find_map(|pronoun| word.strip_suffix(pronoun).filter(|verb| is_verb(verb)))
    };
    if is_verb(word) { word } else { verb().unwrap_or(word) }
}
