//! Languages with spaces between words. The verb begins a request; in German, an infinitive may end it.

use retouch_catalog::FixMode;

use super::english;
use super::german::{self, is_negated};
use super::look::is_look;
use super::quality;
use super::romance;
use super::verb::Verb;
use super::vocabulary::{ENGLISH, GERMAN, LANGUAGES, PORTUGUESE, SPANISH};
use super::words::{LISTS, Words};
use crate::mode::{Act, Object, Request, decide};
use crate::text::{CLAUSE_ENDS, contains, folded, leading, words_of};

/// Prompts that begin like Spanish removals: English ones, and a tongue that comes out.
const NO_REMOVALS: [&str; 5] =
    ["quite al fresco", "quite al dente", "quite a la carte", "quite a la mode", "saca la lengua"];

const WITHOUT: [&str; 5] = ["without", "ohne", "sin", "sans", "sem"];
const WITH: [&str; 5] = ["with", "mit", "con", "avec", "com"];

/// Words between the name of a thing and its description: "the man with the scratched face".
const DESCRIBES: [&str; 11] =
    ["with", "who", "that", "whose", "which", "mit", "con", "que", "avec", "qui", "com"];

/// A verb and the words of its request, including the words of the following parts.
struct Phrase {
    verb: Verb,
    words: Vec<String>,
    /// The number of words in the part of the verb, with a last "and white" or "that it looks real".
    own: usize,
}

impl Phrase {
    fn new(verb: Verb, words: Vec<String>) -> Self {
        Self { verb, own: words.len(), words }
    }

    fn extend(&mut self, part: &[String]) {
        // "Mach, dass es echt aussieht" is one request.
        if self.own == self.words.len() && (part.len() == 1 || part[0] == "dass") {
            self.own += part.len();
        }
        self.words.extend_from_slice(part);
    }
}

/// Returns the mode that a prompt means; `None` if no verb is recognized. `plain` is the folded text.
pub(super) fn mode_of(text: &str, plain: &str) -> Option<FixMode> {
    let all = parts_of(&unquoted(plain));
    let parts: Vec<_> = all.iter().map(|part| bare(part)).filter(|part| !part.is_empty()).collect();
    let mut requests: Vec<Phrase> = vec![];
    let mut before: Vec<String> = vec![];
    for (at, part) in parts.iter().enumerate() {
        let first = requests.first().map(|phrase| phrase.words[0].as_str());
        let follows_without = first.is_some_and(|word| WITHOUT.contains(&word));
        let unwanted = || {
            let is_unwanted = requests.is_empty() && english::does_not_want(part);
            is_unwanted.then_some(Verb::split(Act::Remove))
        };
        match verb_of(text, part, follows_without, parts.len() == 1).or_else(unwanted) {
            // "A beach, clear sky, no people" is a description.
            Some(verb) if requests.is_empty() && describes(&verb, part, at) => break,
            // The words before an infinitive belong to it.
            Some(verb) if verb.is_last => {
                let words = [std::mem::take(&mut before), part.to_vec()].concat();
                requests.push(Phrase::new(verb, words));
            }
            // "The photo is blurry, fix it" is about the blur.
            Some(verb) if verb.act == Act::Restore && is_picture(&part[verb.length..]) => {
                let mut phrase = Phrase::new(verb, part.to_vec());
                phrase.words.append(&mut before);
                requests.push(phrase);
            }
            Some(verb) => requests.push(Phrase::new(verb, part.to_vec())),
            None => match requests.last_mut() {
                Some(phrase) => phrase.extend(part),
                None => before.extend_from_slice(part),
            },
        }
    }
    let describes_a_person =
        |words: &[String]| german::describes(text, words) || english::describes(words);
    if requests.first().is_some_and(|phrase| describes_a_person(&phrase.words)) {
        return None;
    }
    if requests.len() > 1 && is_preface(&requests, plain) {
        requests.remove(0);
    }
    let replaces = all.iter().any(|part| replaces(part));
    let requests: Vec<_> = requests.iter().map(request).collect();
    // In a description, "more details" comes later: "a castle on a hill, more details".
    let asks_for_detail = || {
        let object = parts.first().map(|part| undescribed(part)).unwrap_or_default();
        LANGUAGES.iter().any(|language| contains(object, language.detail))
    };
    let detail = || asks_for_detail().then_some(FixMode::Enhance);
    decide(&requests, replaces).or_else(detail)
}

/// Returns true if the first of several requests only announces the next: "clean up the photo and remove the man", or
/// "Retouch, remove the man", which names the program.
fn is_preface(requests: &[Phrase], plain: &str) -> bool {
    let Phrase { verb, words, .. } = &requests[0];
    let is_cleaning = verb.act == Act::Enhance && quality::is_cleaning(words);
    is_cleaning && requests[1].verb.act == Act::Remove
        || *words == ["retouch"] && plain.contains("retouch,")
}

/// Returns true if a part wants something in the place of what another removes, but not for "don't replace it", "replace it
/// with the background" and "now remove the woman instead".
fn replaces(part: &[String]) -> bool {
    // "Und sorge dafür, dass es natürlich aussieht" replaces nothing.
    let joints = part.iter().take_while(|word| GERMAN.is_filler(word)).count();
    let part = lead_in(&part[joints..]).map_or(part, |length| &part[joints + length..]);
    let has = |list: &[&str]| part.iter().any(|word| list.contains(&word.as_str()));
    let is_other_request = || {
        let verbs = [ENGLISH.remove, ENGLISH.enhance, ENGLISH.restore];
        part.last().is_some_and(|word| word == "instead")
            && verbs.iter().any(|verbs| ENGLISH.leading(bare(part), verbs).is_some())
            && !has(&["with", "for"])
    };
    (LANGUAGES.iter().any(|language| contains(part, language.instead))
        || english::reveals(bare(part)))
        && !has(&[
            "not", "don't", "dont", "never", "nothing", "nicht", "nichts", "nie", "pas", "nao",
        ])
        && !is_other_request()
        && !fills(part)
}

/// Recognizes "replace him with the background", which a removal does.
fn fills(part: &[String]) -> bool {
    const BACKGROUNDS: [&str; 11] = [
        "with background",
        "with the background",
        "by the background",
        "with the surroundings",
        "durch hintergrund",
        "durch den hintergrund",
        "mit dem hintergrund",
        "por el fondo",
        "con el fondo",
        "par le fond",
        "pelo fundo",
    ];
    let is_end = |at: usize| leading(&part[at..], &BACKGROUNDS) == Some(part.len() - at);
    (0..part.len()).any(is_end) && LANGUAGES.iter().any(|language| contains(part, language.instead))
}

/// Recognizes "no people", "sin gente" and "keine Autos", but none of "sin city", "no entry", "no borrar", and "sin sonreír".
fn lacks(part: &[String]) -> bool {
    const NAMES: [&str; 23] = [
        "city",
        "bin",
        "wave",
        "serif",
        "entry",
        "exit",
        "way",
        "name",
        "idea",
        "changes",
        "problem",
        "ahnung",
        "angst",
        "zeit",
        "sorge",
        "sorgen",
        "panik",
        "rauchen",
        "parken",
        "zutritt",
        "aenderung",
        "aenderungen",
        "veraenderungen",
    ];
    let [no, thing] = part else { return false };
    let is_verb = LANGUAGES
        .iter()
        .any(|language| LISTS.iter().any(|(_, list)| list(language).contains(&thing.as_str())));
    let is_infinitive =
        no == "sin" && ["ar", "er", "ir"].iter().any(|ending| thing.ends_with(ending));
    ["no", "sin", "sans", "kein", "keine", "keinen"].contains(&no.as_str())
        && !NAMES.contains(&thing.as_str())
        && !thing.ends_with("ing")
        && !is_infinitive
        && !is_verb
}

/// Returns a text with a word for each of its quotations, unless it begins with one: words in them ask for nothing.
fn unquoted(plain: &str) -> String {
    const MARKS: [char; 6] = ['"', '“', '”', '„', '«', '»'];
    let pieces: Vec<_> = plain.split(MARKS).collect();
    if pieces[0].trim().is_empty() || pieces.len() % 2 == 0 {
        return plain.to_owned();
    }
    pieces.into_iter().step_by(2).collect::<Vec<_>>().join(" quotation ")
}

/// Returns true if a part with a verb describes what the `before` parts without one name: "a beach, clear sky, no people", "a
/// castle, highly detailed, enhance". "There is a man, delete him" is a request.
fn describes(verb: &Verb, part: &[String], before: usize) -> bool {
    let first = part[0].as_str();
    // "Cut off" describes, too.
    let has_thing = part.get(1).is_some_and(|word| {
        ENGLISH.determiners.contains(&word.as_str()) && word != "off" && word != "away"
    });
    let is_adjective = ["clean", "clear", "no", "hide", "delete", "cut"].contains(&first);
    let is_tag =
        matches!(verb.act, Act::Enhance | Act::Restore) && part.len() == 1 && !verb.is_last;
    before > 0 && (WITHOUT.contains(&first) || is_adjective && !has_thing) || before > 1 && is_tag
}

/// Returns the words before a description.
fn undescribed(words: &[String]) -> &[String] {
    let end = words.iter().position(|word| DESCRIBES.contains(&word.as_str()));
    &words[..end.unwrap_or(words.len())]
}

/// Splits folded text into clauses, and those before each joining word.
fn parts_of(plain: &str) -> Vec<Vec<String>> {
    let mut parts = vec![];
    for clause in plain.split(CLAUSE_ENDS) {
        parts.push(vec![]);
        let words = split(clause);
        for (at, word) in words.iter().enumerate() {
            let joins = LANGUAGES.iter().any(|words| words.joints.contains(&word.as_str()));
            // "Sorge dafür, dass es natürlich aussieht" joins nothing.
            let is_inside = at > 0 && lead_in(&words[at - 1..]) > Some(1);
            if joins && !is_inside && !begins_with_detail(&words[at..]) {
                parts.push(vec![]);
            }
            parts.last_mut().expect("a part").push(word.clone());
        }
    }
    parts
}

/// Returns true for "más detalles" and "más natural", whose first word is also a Portuguese "but".
fn begins_with_detail(words: &[String]) -> bool {
    let is_look = |words: &[String]| {
        words.first().is_some_and(|word| word == "mas")
            && words.get(1).is_some_and(|word| SPANISH.natural.contains(&word.as_str()))
    };
    is_look(words) || LANGUAGES.iter().any(|language| leading(words, language.detail).is_some())
}

/// Returns a part without joining words, courtesies and numbers at both ends, and without what introduces its request.
fn bare(part: &[String]) -> &[String] {
    let is_filler = |word: &String| {
        let is_number = word.bytes().all(|letter| letter.is_ascii_digit());
        is_number || LANGUAGES.iter().any(|language| language.is_filler(word))
    };
    let is_start = |at: &usize| !is_filler(&part[*at]) || begins_with_detail(&part[*at..]);
    let start_after = |from: usize| (from..part.len()).find(is_start).unwrap_or(part.len());
    let mut start = start_after(0);
    // "Make sure you don't forget to (add a dog)" has two.
    while let Some(length) = lead_in(&part[start..]) {
        start = start_after(start + length);
    }
    let end = part.len() - part[start..].iter().rev().take_while(|word| is_filler(word)).count();
    // "Type HELLO" greets nobody.
    let verb = ENGLISH.leading(&part[start..], ENGLISH.add).unwrap_or(0);
    &part[start..end.max(start + verb)]
}

/// Returns the length of the words that introduce a request.
fn lead_in(words: &[String]) -> Option<usize> {
    LANGUAGES.iter().filter_map(|language| language.leading(words, language.lead_ins)).max()
}

/// Returns the verb of a part. `follows_without` says whether an earlier part begins with a "without", so that "with" adds a
/// thing: "without the cup, but with a flower". `is_whole` says whether the prompt has no other part.
fn verb_of(text: &str, part: &[String], follows_without: bool, is_whole: bool) -> Option<Verb> {
    // "No céu" is Portuguese: in the sky.
    let is_english = || part[0] != "no" || text.to_lowercase().replace('’', "'") == folded(text);
    if is_whole && lacks(part) && is_english() {
        return Some(Verb::split(Act::Remove));
    }
    if is_negated(part)
        || denies(part)
        || english::names_a_tool(part)
        || !is_whole && is_condition(part)
        || leading(part, &NO_REMOVALS).is_some()
    {
        return None;
    }
    if follows_without && WITH.contains(&part[0].as_str()) {
        return Some(Verb { act: Act::Add, length: 1, is_last: false });
    }
    if fills(part) {
        return Some(Verb::split(Act::Remove));
    }
    let special = quality::verb_of(part)
        .or_else(|| english::verb_of(part, is_whole))
        .or_else(|| german::split_verb(text, part, is_whole))
        .or_else(|| romance::verb_of(part));
    let first = || {
        LISTS.iter().find_map(|(act, list)| {
            let lengths = LANGUAGES.iter().filter_map(|words| words.leading(part, list(words)));
            Some(Verb { act: *act, length: lengths.max()?, is_last: false })
        })
    };
    let only = || german::infinitive(part).filter(|_| part.len() == 1);
    let verb = special.or_else(only).or_else(first).or_else(|| german::infinitive(part))?;
    let act = if verb.act == Act::Change && paints(part) { Act::Paint } else { verb.act };
    Some(Verb { act, ..verb })
}

/// Returns true if a change names a color or a new thing: "make her eyes blue", "turn it into a painting". Neither "make the
/// red car bigger" nor "turn it into 4k" does, and "make it less yellow" corrects a color.
fn paints(part: &[String]) -> bool {
    const NOT_NEW: [&str; 5] = ["less", "weniger", "menos", "moins", "stay"];
    let names_color = LANGUAGES.iter().any(|language| {
        let (last, before) = part.split_last().expect("a part has words");
        let is_infinitive = GERMAN.change.contains(&last.as_str());
        let look = if is_infinitive { before.last() } else { Some(last) };
        look.is_some_and(|look| language.colors.contains(&look.as_str()))
    });
    let becomes = ENGLISH.contains(part, &["into ANY", "to A"]);
    let is_detail = LANGUAGES
        .iter()
        .any(|language| [language.detail, language.sharp].iter().any(|list| contains(part, list)));
    names_color && !contains(part, &NOT_NEW) || becomes && !is_detail
}

/// Recognizes "enlève pas la voiture" and "add no new objects", which negate without a word before the verb.
fn denies(part: &[String]) -> bool {
    // "No" is also a Portuguese "in the": "coloque no céu".
    let adds = || ["add", "insert", "put", "place", "include"].contains(&part[0].as_str());
    part.get(1).is_some_and(|word| {
        ["pas", "jamais", "rien", "nada", "nothing"].contains(&word.as_str())
            || word == "no" && adds()
    })
}

/// Recognizes "without changing her face", "ohne das Gesicht zu verändern" and "sem alterar o fundo", but neither
/// "without the ring" nor "sem colar".
fn is_condition(part: &[String]) -> bool {
    let [without, verb, rest @ ..] = part else { return false };
    let ends = |endings: &[&str]| endings.iter().any(|ending| verb.ends_with(ending));
    let is_before = |language: &Words, anything: &str| {
        rest.first()
            .is_some_and(|word| word == anything || language.determiners.contains(&word.as_str()))
    };
    match without.as_str() {
        "without" => ends(&["ing"]) && is_before(&ENGLISH, "anything"),
        "sem" => ends(&["ar", "er", "ir"]) && is_before(&PORTUGUESE, "nada"),
        _ => german::is_condition(part),
    }
}

fn request(phrase: &Phrase) -> Request {
    let Phrase { verb, words, own } = phrase;
    let start = verb.length - usize::from(ends_in_determiner(phrase));
    let object_of = |end: usize| undescribed(&words[start.min(end)..end]);
    let object = object_of(words.len());
    // "Remove the man and his shadow" is about the man.
    let own_object = object_of(*own);
    // A defect in one language is a thing in another.
    let has = |object: &[String], list: fn(&Words) -> &'static [&'static str]| {
        LANGUAGES.iter().any(|language| {
            speaks(language, phrase)
                && language.contains(object, list(language))
                && !language.contains(object, language.things)
        })
    };
    let is_damage = || has(object, |words| words.damage) || english::names_torn_paper(own_object);
    let is_defect = || has(object, |words| words.defects);
    // "Fix the blur" is an enhancement, and "restore the blurry old photo" is a restoration.
    let is_blurred =
        || is_defect() || names_blur(object) || names_blur(undescribed(changed(phrase)));
    let is_restored = || is_damage() || quality::is_worn(object) || !is_blurred();
    let act = match verb.act {
        Act::Restore if !is_restored() => Act::Enhance,
        act => act,
    };
    // "Enhance the photo and clean the wall" and "enhance the photo, without the people" are enhancements.
    let first = words[0].as_str();
    let mends = ["clean", "clear", "no"].contains(&first) || WITHOUT.contains(&first);
    let is_detail = || LANGUAGES.iter().any(|language| language.contains(object, language.detail));
    let object = match act {
        Act::Remove if is_damage() => Object::Damage,
        Act::Remove if is_defect() => Object::Defect,
        Act::Remove if mends || has(own_object, |words| words.flaws) => Object::Flaw,
        // "Add a sharper castle" adds a castle.
        Act::Add if begins_with_detail(object) || gives_detail(&words[..*own]) => Object::Detail,
        Act::Add if is_quality(object) => Object::Detail,
        Act::Add if is_color(object) => Object::Color,
        Act::Remove | Act::Add => Object::Thing,
        _ if is_detail() => Object::Detail,
        Act::Change if quality::gets_sharp(changed(phrase)) => Object::Detail,
        Act::Change if is_look(verb, &words[..*own]) => Object::NaturalLook,
        _ => Object::Thing,
    };
    Request { act, object }
}

/// Returns true if the last word of a removal's verb belongs to its object: "retire les (rayures)".
fn ends_in_determiner(Phrase { verb, words, .. }: &Phrase) -> bool {
    verb.act == Act::Remove
        && verb.length > 1
        && LANGUAGES
            .iter()
            .any(|language| language.determiners_before(&words[verb.length - 1..]) > 0)
}

/// Returns true if a phrase has its verb in a language; one whose parts stand apart may be in any.
fn speaks(language: &Words, Phrase { verb, words, .. }: &Phrase) -> bool {
    let verbs = LISTS.iter().filter(|(act, _)| *act == verb.act);
    verb.length == 0
        || verbs.into_iter().any(|(_, list)| language.leading(words, list(language)).is_some())
}

/// Returns what a phrase changes and how it looks then: "the photo clear".
fn changed(Phrase { verb, words, own }: &Phrase) -> &[String] {
    let end = own - usize::from(verb.is_last);
    &words[verb.length.min(end)..end]
}

/// Recognizes "(fix) the quality", "(fix) the blurry face" and "(fix) it, the photo is very blurry", but not "(fix) the vase
/// behind the blurry man".
fn names_blur(object: &[String]) -> bool {
    LANGUAGES.iter().any(|language| {
        quality::names(language, object, language.quality)
            || quality::names(language, object, language.blurred)
            || object.last().is_some_and(|word| language.blurred.contains(&word.as_str()))
    })
}

/// Returns true for nothing, "it" and "this picture".
fn is_picture(object: &[String]) -> bool {
    object.iter().all(|word| {
        LANGUAGES.iter().any(|language| {
            [language.determiners, language.whole].iter().any(|list| list.contains(&word.as_str()))
        })
    })
}

/// Recognizes "give the face more details" and "gib dem Gesicht mehr Details", but not "give the man a sharper knife".
fn gives_detail(words: &[String]) -> bool {
    let ends = |list: &[&str]| {
        (0..words.len()).any(|at| leading(&words[at..], list) == Some(words.len() - at))
    };
    ["give", "gib"].contains(&words[0].as_str())
        && LANGUAGES.iter().any(|language| ends(language.detail))
}

/// Words for how much of something is added.
const AMOUNTS: [&str; 10] =
    ["some", "more", "a", "bit", "of", "hinzu", "mehr", "etwas", "mas", "mais"];

/// Recognizes "(add) sharpness" and "(füge) Schärfe (hinzu)", but not "(add) details to the wall".
fn is_quality(object: &[String]) -> bool {
    let is_amount = |word: &&String| AMOUNTS.contains(&word.as_str());
    let mut names = object.iter().filter(|word| !is_amount(word)).peekable();
    names.peek().is_some() && names.all(|name| is_quality_name(name))
}

fn is_quality_name(word: &str) -> bool {
    LANGUAGES.iter().any(|language| language.quality.contains(&word))
}

/// Recognizes "(add) color", "(add) more contrast", "(give it) a fresh look" and "(füge) Farbe (hinzu)", but not "a color
/// chart".
fn is_color(object: &[String]) -> bool {
    const COLORS: [&str; 24] = [
        "color",
        "colour",
        "colors",
        "colours",
        "contrast",
        "brightness",
        "saturation",
        "warmth",
        "vibrance",
        "light",
        "depth",
        "texture",
        "farbe",
        "farben",
        "kontrast",
        "helligkeit",
        "contraste",
        "brillo",
        "couleur",
        "couleurs",
        "luminosite",
        "cor",
        "cores",
        "brilho",
    ];
    let is_look = object.last().is_some_and(|word| word == "look" || word == "finish");
    let is_color =
        |word: &str| COLORS.contains(&word) || AMOUNTS.contains(&word) || is_quality_name(word);
    is_look || object.iter().all(|word| is_color(word))
}

/// Splits folded text into words: "remova-o" and "l'homme" are two each. "S'il" is one, because "il" alone is not a
/// courtesy. Drops symbols that join nothing, and Spanish pronouns.
fn split(plain: &str) -> Vec<String> {
    let mut words = vec![];
    for part in words_of(plain).into_iter().flat_map(|word| word.split('-')) {
        let article = part.find('\'').filter(|at| *at <= 2 && !["s'il", "i'd"].contains(&part));
        let (article, noun) = part.split_at(article.map_or(0, |at| at + 1));
        words.extend([article, romance::without_pronoun(noun)].map(str::to_owned));
    }
    words
        .retain(|word| word.contains(char::is_alphanumeric) || ["&", "+"].contains(&word.as_str()));
    words
}
