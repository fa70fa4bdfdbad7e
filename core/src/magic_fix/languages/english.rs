//! English phrases that are more than a verb at the beginning.

use super::verb::Verb;
use super::words::ENGLISH;
use crate::magic_fix::mode::Act;
use crate::magic_fix::text::{contains, leading};

const VANISH: [&str; 5] = ["disappear", "vanish", "gone", "go away", "invisible"];

/// Words that begin an enhancement before a word for the whole picture.
const CLEAN: [&str; 4] = ["clean", "clear", "clean up", "clear up"];
const WHOLE: [&str; 5] = ["photo", "picture", "image", "photograph", "pic"];

/// Signs of damage that mean a restoration wherever they are, unless another verb comes first.
const DAMAGED: [&str; 10] = [
    "scratch",
    "scratches",
    "scratched",
    "damage",
    "damaged",
    "old photo",
    "tears in",
    "crease",
    "creases",
    "creased",
];

pub(super) fn verb_of(part: &[String]) -> Option<Verb> {
    if cleans_the_whole(part) {
        return Some(Verb::split(Act::Enhance));
    }
    let vanishes = leading(part, &["make", "let"]).is_some() && contains(part, &VANISH);
    (vanishes || takes_out(part) || wants_gone(part)).then_some(Verb::split(Act::Remove))
}

/// Recognizes "take the car out (of the picture)".
fn takes_out(part: &[String]) -> bool {
    let ends = |words: &[&str]| part.last().is_some_and(|last| words.contains(&last.as_str()));
    leading(part, &["take", "get", "cut"]).is_some() && ends(&["out", "away", "off"])
        || leading(part, &["take", "get"]).is_some()
            && contains(part, &["out of the", "out of this", "out of here"])
}

/// Recognizes "(I want) this gone" and "(can) this be removed".
fn wants_gone(part: &[String]) -> bool {
    let begins = part.first().is_some_and(|word| ENGLISH.determiners.contains(&word.as_str()));
    begins
        && part
            .last()
            .is_some_and(|last| ["gone", "removed", "deleted", "erased"].contains(&last.as_str()))
}

/// Returns true if a prompt without a verb mentions damage.
pub(super) fn mentions_damage(words: &[String]) -> bool {
    contains(words, &DAMAGED)
}

/// Returns true if the prompt cleans up the whole picture ("clean up this photo") and not a thing in it ("clean the
/// picture frame").
fn cleans_the_whole(words: &[String]) -> bool {
    let Some(verb) = leading(words, &CLEAN) else { return false };
    let rest = &words[verb..];
    let determiners =
        rest.iter().take_while(|word| ENGLISH.determiners.contains(&word.as_str())).count();
    let what = &rest[determiners..];
    leading(what, &WHOLE).is_some() && what.get(1).is_none_or(|next| next == "up")
}
