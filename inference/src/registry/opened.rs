//! The opened model that a model's thread owns and runs.

use crate::memory::Tenant;
use crate::painter::Painter;
use crate::safety::SafetyChecker;
use crate::segment_anything::SegmentAnything;
use crate::session::{PictureNet, Runtime};

/// An opened model, by the kind of work that it does.
pub enum Opened {
    Net(Box<PictureNet>),
    Painter(Box<dyn Painter>),
    SafetyChecker(Box<SafetyChecker>),
    /// A model that segments the object at a click.
    SegmentAnything(Box<SegmentAnything>),
}

/// An opened model that passed its checks and can replace the serving one.
pub struct Candidate {
    pub opened: Opened,
    /// What opened it, and opens it again.
    pub runtime: Runtime,
    /// Its share of the memory until it replaces the other.
    pub tenant: Tenant,
}

impl Candidate {
    /// Releases its memory. Returns what opens it again.
    pub fn unload(self) -> Runtime {
        drop(self.opened);
        drop(self.tenant);
        self.runtime
    }
}
