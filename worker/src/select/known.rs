//! What is known of a picture: its pixels and what the net found in its regions.

use std::sync::Arc;

use retouch_inference::registry::ModelHandle;
use retouch_pixels::select::{Map, Region, Scene};

/// The maps of a picture are kept up to this number of values, which is four maps of the whole reduced copy.
const MAX_VALUES: usize = 4 << 20;

/// A picture and the maps of its regions.
pub struct Known {
    scene: Arc<Scene>,
    /// The model that made the maps.
    model: Option<ModelHandle>,
    /// The most recently made last.
    maps: Vec<Arc<Map>>,
}

impl Known {
    /// Creates an entry without maps.
    pub fn new(scene: Scene) -> Self {
        Self { scene: Arc::new(scene), model: None, maps: Vec::new() }
    }

    /// Returns the picture.
    pub const fn scene(&self) -> &Arc<Scene> {
        &self.scene
    }

    /// Returns the map of a region that `model` made.
    pub fn map(&mut self, region: Region, model: &ModelHandle) -> Option<Arc<Map>> {
        if self.model.as_ref().is_none_or(|known| !known.is_same(model)) {
            self.maps.clear();
            self.model = Some(model.clone());
        }
        self.maps.iter().find(|map| map.region == region).cloned()
    }

    /// Keeps a map, and forgets older ones if there are too many.
    pub fn keep(&mut self, map: Arc<Map>) {
        self.maps.push(map);
        let values = |maps: &[Arc<Map>]| maps.iter().map(|map| map.values.len()).sum::<usize>();
        // The first is that of the whole picture, which every click needs.
        while values(&self.maps) > MAX_VALUES && self.maps.len() > 2 {
            self.maps.remove(1);
        }
    }
}
