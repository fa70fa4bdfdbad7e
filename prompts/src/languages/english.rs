//! English phrases that need more than a verb at the beginning to recognize.

use super::verb::Verb;
use super::vocabulary::ENGLISH;
use super::words::Words;
use crate::mode::Act;
use crate::text::{contains, leading};

const VANISH: [&str; 5] = ["disappear", "vanish", "gone", "go away", "invisible"];

/// Damage of a photo, but not of what it shows.
const TORN: [&str; 12] = [
    "tear", "tears", "rip", "rips", "crack", "cracks", "fold", "folds", "line", "lines", "hole",
    "holes",
];

/// Means and qualities after "with" that are not new things: "(enhance it) with AI", "with vivid colors".
const NO_THINGS: [&str; 36] = [
    "ai",
    "intelligence",
    "technology",
    "chatgpt",
    "photoshop",
    "lightroom",
    "hdr",
    "flash",
    "upscaler",
    "enhancer",
    "filter",
    "tool",
    "tools",
    "model",
    "software",
    "app",
    "care",
    "precision",
    "look",
    "style",
    "color",
    "colors",
    "colour",
    "colours",
    "contrast",
    "light",
    "lighting",
    "tones",
    "saturation",
    "brightness",
    "warmth",
    "depth",
    "original",
    "natural",
    "realistic",
    "better",
];

/// Enhancements that may bring a new thing.
const IMPROVE: [&str; 4] = ["enhance", "improve", "refine", "upgrade"];

/// Things to which "with" adds something more often than it describes them: "(enhance the) sky with stars", but not
/// "dog with blue eyes".
const GAINING: [&str; 26] = [
    "sky",
    "background",
    "foreground",
    "scene",
    "landscape",
    "beach",
    "sea",
    "water",
    "street",
    "garden",
    "yard",
    "lawn",
    "grass",
    "field",
    "room",
    "bedroom",
    "kitchen",
    "bathroom",
    "wall",
    "walls",
    "floor",
    "table",
    "window",
    "hair",
    "lips",
    "nails",
];

/// New on whatever they are.
const MAKEUP: [&str; 5] = ["makeup", "lipstick", "eyeshadow", "eyeliner", "mascara"];

/// What a repair brings: "(repair the wall) with bricks", but not "(repair the car) with dents".
const MATERIALS: [&str; 20] = [
    "brick",
    "bricks",
    "stone",
    "stones",
    "tile",
    "tiles",
    "wood",
    "wooden",
    "planks",
    "boards",
    "plaster",
    "concrete",
    "cement",
    "marble",
    "metal",
    "steel",
    "gold",
    "paint",
    "grass",
    "wallpaper",
];

/// "With" beside these describes: "the wall behind the woman with red hair".
const PEOPLE: [&str; 12] = [
    "man", "woman", "men", "women", "boy", "girl", "guy", "lady", "person", "people", "child",
    "kid",
];

/// Signs of damage. A prompt without a verb that mentions one is a restoration.
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

/// Returns the verb of a part; see [`super::spaced`]. `is_whole` says whether the prompt has no other part.
pub(super) fn verb_of(part: &[String], is_whole: bool) -> Option<Verb> {
    if covers(part) {
        return Some(Verb::split(Act::Change));
    }
    if mends_with_another(part) {
        return Some(Verb::split(Act::Paint));
    }
    let removes =
        cleans_a_thing(part, is_whole) || vanishes(part) || takes_out(part) || wants_gone(part);
    removes.then_some(Verb::split(Act::Remove))
}

/// Returns true if a part of folded text asks for a removal.
pub(crate) fn is_removal(part: &[String]) -> bool {
    let is_special = || verb_of(part, false).is_some_and(|verb| verb.act == Act::Remove);
    ENGLISH.leading(part, ENGLISH.remove).is_some() || is_special()
}

/// Recognizes "the tear in the photo" and "cracks on this old picture", but none of "the tears in her eyes", "the hole in the
/// picture frame", and "the power lines in the photo".
pub(super) fn names_torn_paper(object: &[String]) -> bool {
    let is_paper = |rest: &[String]| {
        let words = &rest[ENGLISH.determiners_before(rest)..];
        let is_whole = |word: &String| ENGLISH.whole.contains(&word.as_str()) || word == "paper";
        words.iter().position(is_whole).is_some_and(|at| at <= 1 && at + 1 == words.len())
    };
    let [torn, joint, rest @ ..] = &object[ENGLISH.determiners_before(object)..] else {
        return false;
    };
    TORN.contains(&torn.as_str())
        && ["in", "on", "from", "across"].contains(&joint.as_str())
        && is_paper(rest)
}

/// Recognizes "clean the wall" and "clean up background people", but not "clean, modern kitchen".
fn cleans_a_thing(part: &[String], is_whole: bool) -> bool {
    let Some(verb) = leading(part, ENGLISH.clean) else { return false };
    match part.get(verb) {
        None => is_whole,
        Some(next) => verb > 1 || ENGLISH.determiners.contains(&next.as_str()),
    }
}

/// Recognizes "make the car disappear", but neither "make sure it doesn't disappear" nor "make an invisible cloak".
fn vanishes(part: &[String]) -> bool {
    let is_at_end =
        (0..part.len()).any(|at| leading(&part[at..], &VANISH) == Some(part.len() - at));
    let is_not = |word: &String| word == "not" || word == "never" || word.ends_with("n't");
    leading(part, &["make", "let"]).is_some() && is_at_end && !part.iter().any(is_not)
}

/// Recognizes "take the car out (of my picture)", but neither "get her tongue sticking out" nor "take the photo out of the
/// frame".
fn takes_out(part: &[String]) -> bool {
    const FRAMES: [&str; 5] = ["here", "it", "shot", "frame", "scene"];
    let is_out = part.last().is_some_and(|last| ["out", "away", "off"].contains(&last.as_str()));
    let does_otherwise = part.iter().any(|word| word == "to" || word.ends_with("ing"));
    let is_picture = |word: &String| ENGLISH.whole.contains(&word.as_str());
    let is_place = |word: &String| is_picture(word) || FRAMES.contains(&word.as_str());
    let leaves_picture = |at: usize| {
        leading(&part[at..], &["out of", "away from"]).is_some()
            && part[at + 2..].iter().position(is_place).is_some_and(|place| place <= 2)
    };
    let is_of_picture = || {
        let thing = &part[1..];
        thing.get(ENGLISH.determiners_before(thing)).is_some_and(is_picture)
    };
    leading(part, &["take", "get", "cut"]).is_some()
        && (is_out && !does_otherwise || (1..part.len()).any(leaves_picture) && !is_of_picture())
}

/// Recognizes "(I) don't want the pole (there)" and "(I) don't want any cars", but none of "(I) don't want the dog removed",
/// "him to smile", and "any changes".
pub(super) fn does_not_want(part: &[String]) -> bool {
    let Some(verb) = leading(part, &["don't want", "dont want", "do not want"]) else {
        return false;
    };
    let rest = &part[verb..];
    let is_any = usize::from(rest.first().is_some_and(|word| word == "any"));
    let determiners = is_any + ENGLISH.determiners_before(&rest[is_any..]);
    let rest = &rest[determiners..];
    let place = rest.iter().position(|word| ["here", "there", "in"].contains(&word.as_str()));
    let thing = &rest[..place.unwrap_or(rest.len())];
    let is_thing = |word: &String| {
        !["to", "change", "changes", "edits"].contains(&word.as_str())
            && !ENGLISH.colors.contains(&word.as_str())
            && !word.ends_with("ed")
    };
    determiners > 0
        && thing.len() <= if place.is_some() { 3 } else { 1 }
        && thing.iter().all(is_thing)
}

/// Recognizes "(I want) this gone" and "(can) this be removed".
fn wants_gone(part: &[String]) -> bool {
    const GONE: [&str; 4] = ["gone", "removed", "deleted", "erased"];
    let is_one_of = |word: Option<&String>, list: &[&str]| {
        word.is_some_and(|word| list.contains(&word.as_str()))
    };
    is_one_of(part.first(), ENGLISH.determiners)
        && is_one_of(part.last(), &GONE)
        && !contains(part, &["with"])
}

/// Recognizes "hide the face with a mask" and "fill in with a tree", which paint one, but not "fill it with a matching
/// background".
fn covers(part: &[String]) -> bool {
    let fills = leading(part, &["fill"]).is_some()
        && !part.iter().any(|word| ["matching", "similar", "suitable"].contains(&word.as_str()))
        && !contains(part, ENGLISH.natural);
    (fills || leading(part, &["hide", "cover up"]).is_some())
        && contains(
            part,
            &["with a", "with an", "with some", "behind a", "behind an", "behind some"],
        )
}

/// Recognizes "use an AI fill", which tells how to remove.
pub(super) fn names_a_tool(part: &[String]) -> bool {
    let is_tool = |last: &String| {
        ["fill", "tool", "brush", "inpainting", "upscaler", "enhancer"].contains(&last.as_str())
    };
    part.first().is_some_and(|word| word == "use") && part.last().is_some_and(is_tool)
}

/// Recognizes "enhance the sky with clouds", "repair the car into a truck" and "upgrade the car to a Ferrari", but none of
/// "enhance the photo with AI", "enhance the man with the hat", and "fix the vase with a crack".
fn mends_with_another(part: &[String]) -> bool {
    let mut verbs = [ENGLISH.enhance, ENGLISH.restore].into_iter();
    let Some(verb) = verbs.find_map(|verbs| ENGLISH.leading(part, verbs)) else { return false };
    let is_joint = |at: &usize| match part[*at].as_str() {
        "into" | "with" => true,
        "to" => part[0] == "upgrade",
        _ => false,
    };
    // "Enhance with AI" names no thing.
    let Some(joint) = (verb + 1..part.len()).find(is_joint) else { return false };
    let new = &part[joint + 1..];
    let is_named = new.first().is_some_and(|word| {
        !ENGLISH.determiners.contains(&word.as_str()) && !word.ends_with("ing")
    });
    let is_there = part[joint] == "with" && !comes_with(&part[0], &part[verb..joint], new);
    let is_no_thing = || {
        let Words { quality, sharp, detail, damage, defects, blurred, flaws, .. } = ENGLISH;
        [&NO_THINGS, quality, sharp, detail, damage, defects, blurred, flaws]
            .iter()
            .any(|list| contains(new, list))
    };
    is_named && !is_there && !is_no_thing()
}

/// Returns true if a mended `object` gets what follows "with": "(fix) the car with new wheels", "(improve) the room with a
/// fireplace". What is already there describes it: "(fix) the car with dents", "(enhance) the dog with blue eyes".
fn comes_with(verb: &str, object: &[String], new: &[String]) -> bool {
    const BEFORE_PLACE: [&str; 6] = ["in", "on", "of", "from", "at", "behind"];
    let is_one_of = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let mut names = object.split(|word| is_one_of(word, &BEFORE_PLACE));
    let Some(name) = names.next().and_then(<[String]>::last) else { return false };
    let names_people = [object, new].iter().any(|words| contains(words, &PEOPLE));
    if is_one_of(name, ENGLISH.whole) || names_people {
        return false;
    }
    let new = &new[ENGLISH.determiners_before(new)..];
    let is_material = || {
        let lists: [&[&str]; 3] = [&MATERIALS, ENGLISH.colors, &["fresh"]];
        new.last().is_some_and(|word| is_one_of(word, &MATERIALS))
            && new.iter().all(|word| lists.iter().any(|list| is_one_of(word, list)))
    };
    let improves = IMPROVE.contains(&verb);
    new.first().is_some_and(|word| word == "new")
        || is_material()
        || verb == "upgrade"
        || improves && (is_one_of(name, &GAINING) || contains(new, &MAKEUP))
}

/// Recognizes "remove the wall to show a garden".
pub(super) fn reveals(part: &[String]) -> bool {
    ENGLISH.leading(part, ENGLISH.remove).is_some()
        && ENGLISH.contains(part, &["to show A", "to reveal A"])
}

/// Recognizes "without glasses smiling", which describes a person, but neither "without the man smiling" nor "without
/// glasses".
pub(super) fn describes(words: &[String]) -> bool {
    const DO: [&str; 6] = ["smiling", "laughing", "grinning", "crying", "posing", "winking"];
    let [without, thing, .., last] = words else { return false };
    without == "without"
        && DO.contains(&last.as_str())
        && !ENGLISH.determiners.contains(&thing.as_str())
}

/// Returns true if a prompt without a verb mentions damage.
pub(super) fn mentions_damage(words: &[String]) -> bool {
    contains(words, &DAMAGED)
}
