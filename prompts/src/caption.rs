//! The English caption in a prompt, for models that follow captions instead of instructions.

use super::languages::{ENGLISH, is_english_removal};
use super::text::{CLAUSE_ENDS, leading, words_of};

/// Words before a thing that is in the picture already.
const DEFINITE: [&str; 12] =
    ["the", "this", "that", "these", "those", "his", "her", "its", "their", "my", "your", "our"];
/// Verbs after which "not" keeps something as it is.
const NOT_DONE: [&str; 11] = [
    "change", "touch", "alter", "modify", "move", "remove", "replace", "edit", "add", "affect",
    "paint",
];
/// Verbs whose object is the caption.
const ADD: [&str; 8] = ["add", "put", "insert", "place", "draw", "paint", "give", "include"];

/// Returns the caption in a prompt; see [`super::Prompt::caption`].
pub(super) fn caption_of(text: &str) -> String {
    let text = text.lines().map(without_number).collect::<Vec<_>>().join("\n");
    let mut clauses: Vec<_> = text.split(CLAUSE_ENDS).map(words_of).collect();
    drop_thanks(&mut clauses);
    let words = clauses.concat();
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase().replace('’', "'")).collect();
    // Where another request may begin, with and without the words that join it.
    let mut clause_start = 0;
    let mut starts = vec![];
    for clause in &clauses {
        starts.push(clause_start);
        clause_start += clause.len();
    }
    // "Instead of the cup, a vase" begins with the vase.
    let after = |start: &usize| is_replaced(&lower) && (1..lower.len()).contains(start);
    let begin = starts.iter().copied().find(after).unwrap_or(0);
    let first = begin + courtesies(&lower[begin..]);
    let requests = (first + 1..lower.len())
        .filter(|at| starts.contains(at) || ENGLISH.joints.contains(&lower[*at].as_str()))
        .map(|at| {
            let end = at + ENGLISH.introduction(&lower[at..]);
            // "And instead add a cat".
            let has_instead = lower.get(end).is_some_and(|word| word == "instead");
            at..end + usize::from(has_instead && !is_replaced(&lower[end..]))
        });
    let begins = |at: usize, verbs: &[&str]| ENGLISH.leading(&lower[at..], verbs).is_some();
    let paints = [&ADD, ENGLISH.change, ENGLISH.paint].iter().any(|verbs| begins(first, verbs));
    // "Remove the cup and replace it with a flower", "take the cup away, then put a flower there", "remove the sky and
    // make it red".
    let second = || {
        let replaces = lower.iter().position(|word| word == "replace" || word == "replacing");
        // "Make it look natural and put a flower there" paints a flower.
        let find = |verbs| requests.clone().map(|at| at.end).find(|at| begins(*at, verbs));
        // "Remove the wall to show a garden".
        let shows = || (0..lower.len()).find(|at| begins(*at, &["to show A", "to reveal A"]));
        replaces
            .or_else(|| find(ENGLISH.add))
            .or_else(|| find(ENGLISH.change))
            .or_else(|| find(ENGLISH.paint))
            .or_else(|| shows().map(|at| at + 2))
    };
    let from = if paints { first } else { second().unwrap_or(first) };
    // "Add a hat and remove the glasses" and "add a hat, but keep the glasses" paint only a hat.
    let starts: Vec<_> = requests.filter(|at| at.start > from).collect();
    let ends = starts.iter().skip(1).map(|next| next.start).chain([lower.len()]);
    // A request that consists of courtesies ("thanks") has no words, and its introduction may extend into the next.
    let paints_nothing = |request: &[String]| is_english_removal(request) || keeps(request);
    let other = starts
        .iter()
        .zip(ends)
        .find(|(at, end)| lower.get(at.end..*end).is_some_and(paints_nothing));
    let to = other.map_or(lower.len(), |(at, _)| at.start);
    let is_old = |at: &usize| is_replaced(&lower[*at..]) || is_condition(&lower[*at..]);
    let to = (from + 1..to).find(is_old).unwrap_or(to);
    new_thing(&words[from..to], &lower[from..to])
}

/// Recognizes "instead of (the cup)".
fn is_replaced(words: &[String]) -> bool {
    leading(words, &["instead of"]).is_some()
}

/// Recognizes "without changing the dog", but neither "without a hat" nor "without smiling people".
fn is_condition(words: &[String]) -> bool {
    let [without, verb, thing, ..] = words else { return false };
    let is_definite = DEFINITE.contains(&thing.as_str()) || thing == "anything";
    without == "without" && verb.ends_with("ing") && is_definite
}

/// Recognizes "(but) keep the sofa", "(make sure) not to change the dog" and "not a dog", but neither "keep calm" nor "do not
/// enter".
fn keeps(request: &[String]) -> bool {
    const NOT: [&str; 5] = ["not to", "don't", "dont", "do not", "never"];
    let follows = |phrases: &[&str], list: &[&str]| {
        leading(request, phrases)
            .and_then(|length| request.get(length))
            .is_some_and(|word| list.contains(&word.as_str()))
    };
    follows(&["keep", "leave"], &DEFINITE)
        || follows(&["keep", "leave"], &["everything", "all"])
        || follows(&NOT, &NOT_DONE)
        || follows(&["not"], &["a", "an"])
}

/// Returns what a request paints: what follows its verb, and for a replacement only the new thing.
fn new_thing(words: &[&str], lower: &[String]) -> String {
    let after = |start: usize| words.get(start..).unwrap_or_default().join(" ");
    let mends = || {
        let verbs = [ENGLISH.enhance, ENGLISH.restore];
        verbs.iter().any(|verbs| ENGLISH.leading(lower, verbs).is_some())
    };
    let separators: &[&str] = match lower.first().map(String::as_str) {
        Some("replace" | "replacing") => &["with", "by"],
        Some("swap" | "exchange" | "substitute") => &["for", "with", "by"],
        // "Make him jump into a lake" changes no thing into another.
        Some("make") if makes_another(lower) => &["into"],
        Some("upgrade") => &["to", "into", "with"],
        Some(_) if mends() => &["into", "with"],
        Some("change" | "turn" | "convert") => &["into", "to"],
        _ => &[],
    };
    let separates = |at: &usize| separators.contains(&lower[*at].as_str());
    // "The man with the hat" is one thing. A new thing is seldom definite.
    let is_definite =
        |at: usize| lower.get(at).is_some_and(|word| DEFINITE.contains(&word.as_str()));
    // "Substitute a cat for the dog" names the new thing first.
    if leading(lower, &["substitute"]).is_some()
        && let Some(at) = (2..lower.len()).find(|at| lower[*at] == "for" && is_definite(at + 1))
    {
        return words[1..at].join(" ");
    }
    let replacement = (0..lower.len())
        .find(|at| separates(at) && !is_definite(at + 1))
        .or_else(|| {
            // "Replace the sky with the sunset by the sea".
            let last = |word: &&str| lower.iter().rposition(|other| other == *word);
            separators.iter().find_map(last)
        })
        .map(|at| after(at + 1));
    let rest = replacement.or_else(|| {
        let verb = leading(lower, &ADD).or_else(|| leading(lower, &["make", "it"]))?;
        Some(after(verb))
    });
    let rest = rest.map(|rest| strip_places(&rest)).filter(|rest| !rest.is_empty());
    rest.unwrap_or_else(|| after(0))
}

/// Recognizes "make it into a cat" and "make the dog into a cat", but not "make him jump into a lake".
fn makes_another(words: &[String]) -> bool {
    let is_into = |at: usize| words.get(at).is_some_and(|word| word == "into");
    is_into(2) || is_into(3) && DEFINITE.contains(&words[1].as_str())
}

/// Returns a line without the number in front of it: "1. add a hat".
fn without_number(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
    rest.filter(|rest| !words_of(rest).is_empty()).unwrap_or(line)
}

/// Drops the courtesies at the end: "add a hat please, thank you!"
fn drop_thanks(clauses: &mut Vec<Vec<&str>>) {
    let is_one_of = |word: &str, list: &[&str]| list.contains(&word.to_lowercase().as_str());
    let is_thanks = |clause: &[&str]| {
        clause
            .iter()
            .all(|word| is_one_of(word, &["thanks", "thank", "you", "please", "pls", "plz"]))
    };
    while clauses.split_last().is_some_and(|(last, others)| {
        is_thanks(last) && others.iter().any(|clause| !clause.is_empty())
    }) {
        clauses.pop();
    }
    if let Some(last) = clauses.last_mut() {
        while last.len() > 1 && is_one_of(last[last.len() - 1], &["please", "pls", "plz"]) {
            last.pop();
        }
    }
}

/// Returns the number of courtesies at the beginning; 0 if the prompt consists of nothing else.
fn courtesies(words: &[String]) -> usize {
    let polite = ENGLISH.introduction(words);
    if polite == words.len() { 0 } else { polite }
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
