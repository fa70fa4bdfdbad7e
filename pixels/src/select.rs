//! Click to select: finds the pixels of the clicked object.
//!
//! A net that finds subjects says roughly where the clicked one is: its [`Map`] of a region, of which
//! [`Subject::at`] takes the part that is connected with the click. [`Scene::select`] then finds the exact edge, first
//! in a reduced copy of the picture and then at full size, by growing regions from what certainly belongs to the
//! subject and what certainly does not. Every step takes time linear in the number of pixels.
//!
//! Points and regions are in pixels of the reduced copy; see [`Scene::reduce_point`].

mod band;
mod carve;
mod edge;
mod flood;
mod grow;
mod prior;
mod region;
mod scene;
mod selection;
mod subject;

pub use prior::Prior;
pub use region::{Point, Region};
pub use scene::{MAX_SIDE, Scene};
pub use selection::Selection;
pub use subject::{Map, Subject};

/// A person's marks, in pixels of the reduced copy.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Points that belong to the selection.
    pub positive: Vec<Point>,
    /// Points that do not.
    pub negative: Vec<Point>,
    /// Nothing is selected outside this region.
    pub area: Option<Region>,
}

#[cfg(test)]
mod tests;
