//! Words and phrases of prompts.

pub(super) const CLAUSE_ENDS: [char; 16] =
    [',', '.', ';', ':', '!', '?', '\n', '–', '—', '、', '。', '，', '；', '：', '！', '？'];

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
        .filter(|phrase| {
            let mut rest = words.iter();
            phrase.split(' ').all(|word| rest.next().is_some_and(|next| next == word))
        })
        .map(|phrase| phrase.split(' ').count())
        .max()
}

pub(super) fn contains(words: &[String], phrases: &[&str]) -> bool {
    (0..words.len()).any(|start| leading(&words[start..], phrases).is_some())
}

/// Returns a text in lower case and without accents. An umlaut or ß becomes two letters, as people write it without
/// one: "schärfer" is sharper, and "scharfer" is sharp.
pub(super) fn folded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            'ä' => plain.push_str("ae"),
            'ö' => plain.push_str("oe"),
            'ü' => plain.push_str("ue"),
            'ß' => plain.push_str("ss"),
            'à'..='ã' => plain.push('a'),
            'ç' => plain.push('c'),
            // The last is an umlaut that follows its letter.
            'è'..='ë' | '\u{308}' => plain.push('e'),
            'ì'..='ï' => plain.push('i'),
            'ñ' => plain.push('n'),
            'ò'..='õ' => plain.push('o'),
            'ù'..='û' => plain.push('u'),
            '’' => plain.push('\''),
            // Other accents that follow their letter.
            '\u{300}'..='\u{36f}' => {}
            other => plain.push(other),
        }
    }
    plain
}
