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
    /// Whether it asks for a natural look, which a removal has anyway.
    pub is_natural: bool,
}

/// Returns the mode of a prompt with these requests. `replaces` says whether it replaces what it removes.
pub(super) fn decide(requests: &[Request], replaces: bool) -> Option<FixMode> {
    let any = |is: fn(&Request) -> bool| requests.iter().any(is);
    let removes = any(|request| request.act == Act::Remove);
    let paints = any(|request| {
        let changes = request.act == Act::Change && !request.is_natural;
        (changes || request.act == Act::Add) && !request.is_about_detail
    });
    let first = requests.first()?;
    let mode = match first.act {
        Act::Remove | Act::Add if removes && (replaces || paints) => FixMode::Edit,
        Act::Remove if first.is_about_damage => FixMode::Restore,
        Act::Remove if first.is_about_defects => FixMode::Enhance,
        Act::Remove => FixMode::Remove,
        Act::Enhance => FixMode::Enhance,
        Act::Restore => FixMode::Restore,
        Act::Add | Act::Change if first.is_about_detail => FixMode::Enhance,
        Act::Add => FixMode::Add,
        Act::Change => FixMode::Edit,
    };
    Some(mode)
}
