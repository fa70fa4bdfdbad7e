//! The table in [`super`], applied to what a prompt asks for.

use retouch_catalog::FixMode;

/// What a verb asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Remove,
    Restore,
    Enhance,
    Add,
    /// Gives an existing thing another color, or turns it into another thing.
    Paint,
    /// Anything else that changes the picture.
    Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// Any other thing.
    Thing,
    /// Damage, such as scratches, that is removed.
    Damage,
    /// A defect of the whole picture, such as noise, that is removed.
    Defect,
    /// A flaw, such as a stain, or what a condition names: "enhance the photo, without the people".
    Flaw,
    Detail,
    /// Color, light or another look, which is added to a faded picture.
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

impl Request {
    /// Returns true if this leaves the things in a picture as they are.
    fn mends(self) -> bool {
        matches!(self.act, Act::Enhance | Act::Restore)
            || matches!(self.object, Object::Damage | Object::Defect | Object::Detail)
    }
}

/// Returns the mode of a prompt with these requests; `None` if there are none. `replaces` says whether it replaces what
/// it removes.
pub(super) fn decide(requests: &[Request], replaces: bool) -> Option<FixMode> {
    let removes = requests.iter().any(|request| request.act == Act::Remove);
    let first = deciding(requests)?;
    // "Remove the scratches and make the colors vivid" asks for a picture without scratches, not for another one.
    let mends = first.mends();
    let paints = requests.iter().any(|Request { act, object }| match act {
        Act::Add => *object == Object::Thing || *object == Object::Color && !mends,
        Act::Paint => true,
        Act::Change => *object == Object::Thing && !mends,
        Act::Remove | Act::Restore | Act::Enhance => false,
    });
    let mode = match (first.act, first.object) {
        (Act::Remove | Act::Add, _) if removes && (replaces || paints) => FixMode::Edit,
        // "Enhance her lips, paint them red".
        _ if mends && (replaces || paints) => FixMode::Edit,
        (Act::Remove, Object::Damage) | (Act::Restore, _) => FixMode::Restore,
        (Act::Remove, Object::Defect)
        | (Act::Enhance, _)
        | (Act::Add | Act::Change, Object::Detail) => FixMode::Enhance,
        (Act::Remove, _) => FixMode::Remove,
        (Act::Add, _) => FixMode::Add,
        (Act::Paint | Act::Change, _) => FixMode::Edit,
    };
    Some(mode)
}

/// Returns the request that decides: the first, but "enhance the photo and remove the man" must not keep the man.
fn deciding(requests: &[Request]) -> Option<&Request> {
    let first = requests.first()?;
    let is_removal =
        |request: &&Request| request.act == Act::Remove && request.object == Object::Thing;
    let removal = requests.iter().find(is_removal);
    Some(removal.filter(|_| first.mends()).unwrap_or(first))
}
