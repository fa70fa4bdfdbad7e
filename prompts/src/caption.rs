//! The English caption in a prompt, for models that follow captions instead of instructions.

use super::languages::{ENGLISH, is_english_removal};
use super::text::{CLAUSE_ENDS, leading, words_of};

/// Words before a thing that is in the picture already.
const DEFINITE: [&str; 12] =
    ["the", "this", "that", "these", "those", "his", "her", "its", "their", "my", "your", "our"];
/// Verbs whose object is the caption.
const ADD: [&str; 8] = ["add", "put", "insert", "place", "draw", "paint", "give", "include"];

/// Returns the caption in a prompt; see [`super::Prompt::caption`].
pub(super) fn caption_of(text: &str) -> String {
    let text = text.lines().map(without_number).collect::<Vec<_>>().join("\n");
    let mut clauses: Vec<_> = text.split(CLAUSE_ENDS).map(words_of).collect();
    drop_thanks(&mut clauses);
    let words = clauses.concat();
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    let first = courtesies(&lower);
    // Where another request may begin, with and without the words that join it.
    let mut clause_start = 0;
    let mut starts = vec![];
    for clause in &clauses {
        starts.push(clause_start);
        clause_start += clause.len();
    }
    let requests = (first + 1..lower.len())
        .filter(|at| starts.contains(at) || ENGLISH.joints.contains(&lower[*at].as_str()))
        .map(|at| at..at + ENGLISH.introduction(&lower[at..]));
    let begins = |at: usize, verbs: &[&str]| ENGLISH.leading(&lower[at..], verbs).is_some();
    let paints = begins(first, &ADD) || begins(first, ENGLISH.change);
    // "Remove the cup and replace it with a flower", "take the cup away, then put a flower there", "remove the sky and
    // make it red".
    let second = || {
        let replaces = lower.iter().position(|word| word == "replace" || word == "replacing");
        // "Make it look natural and put a flower there" paints a flower.
        let find = |verbs| requests.clone().map(|at| at.end).find(|at| begins(*at, verbs));
        replaces.or_else(|| find(ENGLISH.add)).or_else(|| find(ENGLISH.change))
    };
    let from = if paints { first } else { second().unwrap_or(first) };
    // "Add a hat and remove the glasses" paints only a hat.
    let starts: Vec<_> = requests.filter(|at| at.start > from).collect();
    let ends = starts.iter().skip(1).map(|next| next.start).chain([lower.len()]);
    // A request that consists of courtesies ("thanks") has no words, and its introduction may go on into the next.
    let removal = starts
        .iter()
        .zip(ends)
        .find(|(at, end)| lower.get(at.end..*end).is_some_and(is_english_removal));
    let to = removal.map_or(lower.len(), |(at, _)| at.start);
    new_thing(&words[from..to], &lower[from..to])
}

/// Returns what a request paints: what follows its verb, and for a replacement only the new thing.
fn new_thing(words: &[&str], lower: &[String]) -> String {
    let after = |start: usize| words.get(start..).unwrap_or_default().join(" ");
    let separators: &[&str] = match lower.first().map(String::as_str) {
        Some("replace" | "replacing") => &["with", "by"],
        Some("swap") => &["for", "with"],
        Some("change" | "turn" | "convert") => &["into", "to"],
        _ => &[],
    };
    let separates = |at: &usize| separators.contains(&lower[*at].as_str());
    // "The man with the hat" is one thing. A new thing is seldom definite.
    let is_definite =
        |at: usize| lower.get(at).is_some_and(|word| DEFINITE.contains(&word.as_str()));
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
