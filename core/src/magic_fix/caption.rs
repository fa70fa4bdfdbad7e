//! The caption in a prompt, for models that follow captions. They are English.

use super::languages::ENGLISH;
use super::text::{CLAUSE_ENDS, leading, words_of};

/// Words before a thing that is in the picture already.
const DEFINITE: [&str; 12] =
    ["the", "this", "that", "these", "those", "his", "her", "its", "their", "my", "your", "our"];
/// Verbs whose object is the caption.
const ADD: [&str; 8] = ["add", "put", "insert", "place", "draw", "paint", "give", "include"];

/// Returns the caption in a prompt; see [`super::Prompt::caption`].
pub(super) fn caption_of(text: &str) -> String {
    let clauses: Vec<_> = text.split(CLAUSE_ENDS).map(words_of).collect();
    let words = clauses.concat();
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    let start = courtesies(&lower);
    let begins_clause = |at: usize| {
        let mut end = 0;
        clauses.iter().any(|clause| {
            end += clause.len();
            at + start == end
        })
    };
    let (words, lower) = (&words[start..], &lower[start..]);
    let removes = ENGLISH.leading(lower, ENGLISH.remove).is_some();
    let from = if removes { second_request(lower, begins_clause) } else { 0 };
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
    rest.unwrap_or_else(|| after(from))
}

/// Returns the number of courtesies at the beginning; 0 if the prompt consists of nothing else.
fn courtesies(words: &[String]) -> usize {
    let polite = words.iter().take_while(|word| ENGLISH.courtesy.contains(&word.as_str())).count();
    if polite == words.len() { 0 } else { polite }
}

/// Returns the index of the request that follows a removal, or 0: "remove the cup and replace it with a flower",
/// "remove the cup, then put a flower there".
fn second_request(words: &[String], begins_clause: impl Fn(usize) -> bool) -> usize {
    let replaces = words.iter().position(|word| word == "replace" || word == "replacing");
    let is_border =
        |at: usize| begins_clause(at) || ENGLISH.joints.contains(&words[at - 1].as_str());
    let adds = || {
        (1..words.len())
            .filter(|at| is_border(*at))
            .map(|at| at + words[at..].iter().take_while(|word| ENGLISH.is_filler(word)).count())
            .find(|at| ENGLISH.leading(&words[*at..], ENGLISH.add).is_some())
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
