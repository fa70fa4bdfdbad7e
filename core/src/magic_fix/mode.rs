//! The table in [`super`], applied to what a prompt asks for.

use retouch_catalog::FixMode;

/// What a verb asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Remove,
    Restore,
    Enhance,
    Add,
    /// Anything else that changes the picture.
    Change,
}

/// The object of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// Any other thing.
    Thing,
    /// Damage, such as scratches, that is removed.
    Damage,
    /// A defect of the whole picture, such as noise, that is removed.
    Defect,
    /// More detail.
    Detail,
    /// Color, which is added to a faded picture.
    Color,
    /// A natural look, which a removal has anyway.
    NaturalLook,
}

/// One of the things that a prompt asks for: "remove the cup and put a flower there" has two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub act: Act,
    pub object: Object,
}

/// Returns the mode of a prompt with these requests; `None` if there are none. `replaces` says whether it replaces what it removes.
pub(super) fn decide(requests: &[Request], replaces: bool) -> Option<FixMode> {
    let first = requests.first()?;
    let removes = requests.iter().any(|request| request.act == Act::Remove);
    // "Remove the scratches and make the colors vivid" asks for a picture without scratches, not for another one.
    let mends = matches!(first.object, Object::Damage | Object::Defect);
    let paints = requests.iter().any(|Request { act, object }| match act {
        Act::Add => *object == Object::Thing || *object == Object::Color && !mends,
        Act::Change => *object == Object::Thing && !mends,
        _ => false,
    });
    let mode = match (first.act, first.object) {
        (Act::Remove | Act::Add, _) if removes && (replaces || paints) => FixMode::Edit,
        (Act::Remove, Object::Damage) | (Act::Restore, _) => FixMode::Restore,
        (Act::Remove, Object::Defect)
        | (Act::Enhance, _)
        | (Act::Add | Act::Change, Object::Detail) => FixMode::Enhance,
        (Act::Remove, _) => FixMode::Remove,
        (Act::Add, _) => FixMode::Add,
        (Act::Change, _) => FixMode::Edit,
    };
    Some(mode)
}
