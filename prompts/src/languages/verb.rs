//! A verb in a language with spaces between words.

use crate::mode::Act;

/// A verb at the beginning or the end of a clause.
pub(super) struct Verb {
    pub act: Act,
    /// The number of words at the beginning that belong to it; 0 if it is elsewhere.
    pub length: usize,
    /// Whether it is an infinitive at the end.
    pub is_last: bool,
}

impl Verb {
    /// A verb whose parts are not only at the beginning.
    pub const fn split(act: Act) -> Self {
        Self { act, length: 0, is_last: false }
    }
}
