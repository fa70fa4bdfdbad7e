//! The kinds of words that are listed for each language, and how to find them in a prompt.

use crate::mode::Act;

type List = &'static [&'static str];
/// Selects one of a language's lists.
type Choice = fn(&Words) -> List;

pub struct Words {
    /// Courtesies, greetings and adverbs, which are ignored at the beginning and the end of a clause.
    pub courtesy: List,
    /// Words that introduce a request: "make sure (to)".
    pub lead_ins: List,
    /// Words that join a second request to the first.
    pub joints: List,
    /// Words before a thing: articles, demonstratives, possessives, "all".
    pub determiners: List,
    /// Indefinite articles: a thing after them is new.
    pub articles: List,
    /// Verbs of a removal.
    pub remove: List,
    /// Verbs of a restoration.
    pub restore: List,
    /// Verbs of an enhancement.
    pub enhance: List,
    /// Verbs that give existing things another color or clothes.
    pub paint: List,
    /// Verbs that clean: an enhancement of the whole picture.
    pub clean: List,
    /// Verbs that raise a quality.
    pub raise: List,
    /// Verbs that lower a defect.
    pub lower: List,
    /// Verbs that add a thing.
    pub add: List,
    /// Verbs of another change.
    pub change: List,
    /// Names of colors.
    pub colors: List,
    /// Words for the whole picture.
    pub whole: List,
    /// Damage: removing it is a restoration.
    pub damage: List,
    /// Defects of the whole picture: removing them is an enhancement.
    pub defects: List,
    /// Things whose names contain a defect or damage: "grain de beauté".
    pub things: List,
    /// Adjectives of a picture with defects.
    pub blurred: List,
    /// Flaws, such as stains: an enhancement or a restoration that also removes them remains one.
    pub flaws: List,
    /// What only an enhancement asks for.
    pub detail: List,
    /// Qualities of a picture that an enhancement raises.
    pub quality: List,
    /// Looks that an enhancement gives the whole picture.
    pub sharp: List,
    /// Looks that a removal has anyway, such as "(make it look) natural".
    pub natural: List,
    /// What turns a removal into an edit, most often a replacement.
    pub instead: List,
}

/// The verbs of each act. An earlier act wins.
pub const LISTS: [(Act, Choice); 6] = [
    (Act::Remove, |words| words.remove),
    (Act::Enhance, |words| words.enhance),
    (Act::Restore, |words| words.restore),
    (Act::Paint, |words| words.paint),
    (Act::Add, |words| words.add),
    (Act::Change, |words| words.change),
];

impl Words {
    /// Returns the length, in words, of the longest of `phrases` that a clause begins with.
    pub fn leading(&self, clause: &[String], phrases: &[&str]) -> Option<usize> {
        phrases.iter().filter_map(|phrase| self.length(clause, phrase)).max()
    }

    fn length(&self, clause: &[String], phrase: &str) -> Option<usize> {
        let mut length = 0;
        for pattern in phrase.split(' ') {
            let word = clause.get(length).map(String::as_str);
            let matches = match pattern {
                "A" => word.is_some_and(|word| self.articles.contains(&word)),
                "DET" => word.is_some_and(|word| {
                    self.determiners.contains(&word) || self.articles.contains(&word)
                }),
                "ANY" => word.is_some(),
                pattern => word == Some(pattern),
            };
            if !matches {
                return None;
            }
            length += 1;
        }
        Some(length)
    }

    pub fn contains(&self, words: &[String], phrases: &[&str]) -> bool {
        (0..words.len()).any(|start| self.leading(&words[start..], phrases).is_some())
    }

    /// Returns the number of determiners and articles at the beginning.
    pub fn determiners_before(&self, words: &[String]) -> usize {
        let is_determiner = |word: &&String| {
            self.determiners.contains(&word.as_str()) || self.articles.contains(&word.as_str())
        };
        words.iter().take_while(is_determiner).count()
    }

    /// Returns the number of words before a request: "and make sure to (add a dog)".
    pub fn introduction(&self, clause: &[String]) -> usize {
        let fillers = |words: &[String]| words.iter().take_while(|w| self.is_filler(w)).count();
        let start = fillers(clause);
        let lead_in = self.leading(&clause[start..], self.lead_ins);
        lead_in.map_or(start, |length| start + length + fillers(&clause[start + length..]))
    }

    /// Returns true if a word is ignored at the ends of a clause.
    pub fn is_filler(&self, word: &str) -> bool {
        self.courtesy.contains(&word) || self.joints.contains(&word)
    }
}
