//! What a model's thread owns and runs.

use crate::painter::Painter;
use crate::safety::SafetyChecker;
use crate::segment_anything::SegmentAnything;
use crate::session::Session;

/// An opened model, by the kind of work that it does.
pub enum Engine {
    /// A net with one input tensor and one output tensor.
    Net(Box<Session>),
    /// A painter of crops.
    Painter(Box<dyn Painter>),
    /// A safety net.
    SafetyChecker(Box<SafetyChecker>),
    /// A model that segments what somebody points at.
    SegmentAnything(Box<SegmentAnything>),
}
