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

/// One of the things that a prompt asks for: "remove the cup and put a flower there" has two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub act: Act,
    /// Whether its object is damage, such as scratches.
    pub is_about_damage: bool,
    /// Whether its object is a defect of the whole picture, such as noise.
    pub is_about_defects: bool,
    /// Whether it asks for more detail.
    pub is_about_detail: bool,
}

/// Returns the mode of a prompt with these requests. `replaces` says whether it replaces what it removes, and `details`
/// whether it mentions more detail anywhere.
pub(super) fn decide(requests: &[Request], replaces: bool, details: bool) -> Option<FixMode> {
    let any = |is: fn(&Request) -> bool| requests.iter().any(is);
    let removes = any(|request| request.act == Act::Remove);
    let removes_damage = any(|request| request.act == Act::Remove && request.is_about_damage);
    let removes_things = any(|request| {
        request.act == Act::Remove && !request.is_about_damage && !request.is_about_defects
    });
    let adds = any(|request| request.act == Act::Add && !request.is_about_detail);
    let mode = match requests.first().map(|first| first.act) {
        Some(Act::Remove | Act::Restore | Act::Enhance | Act::Add)
            if removes && (replaces || adds) =>
        {
            FixMode::Edit
        }
        // A thing that stays is worse than detail that is missing.
        Some(Act::Remove | Act::Restore | Act::Enhance) if removes_things => FixMode::Remove,
        Some(Act::Remove) if removes_damage => FixMode::Restore,
        Some(Act::Remove | Act::Enhance) => FixMode::Enhance,
        _ if details => FixMode::Enhance,
        Some(Act::Restore) => FixMode::Restore,
        Some(Act::Add) => FixMode::Add,
        Some(Act::Change) => FixMode::Edit,
        None => return None,
    };
    Some(mode)
}
