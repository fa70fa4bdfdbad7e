//! Cached knowledge of a picture: its pixels, and the findings of models.

use std::sync::Arc;

use retouch_inference::registry::{ModelHandle, ModelLoad};
use retouch_inference::segment_anything::Features;
use retouch_pixels::select::{Map, Region, Scene};

/// The maps of a picture are kept up to this number of values, which is four maps of the whole reduced copy.
const MAX_VALUES: usize = 4 << 20;

/// A picture and the maps of its regions.
pub struct Known {
    scene: Arc<Scene>,
    /// The model that made the maps.
    model: Option<ModelLoad>,
    /// Sorted by age; the newest is last.
    maps: Vec<Arc<Map>>,
    /// What a model that takes clicks found in the picture, and that model.
    features: Option<(ModelLoad, Arc<Features>)>,
}

impl Known {
    pub fn new(scene: Scene) -> Self {
        Self { scene: Arc::new(scene), model: None, maps: Vec::new(), features: None }
    }

    pub const fn scene(&self) -> &Arc<Scene> {
        &self.scene
    }

    /// Returns the most memory in bytes that the picture takes while something is selected in it.
    pub fn memory_bytes(&self) -> u64 {
        let (width, height) = self.scene.size();
        let features = self.features.as_ref().map_or(0, |(_, features)| features.bytes());
        Scene::memory_bytes(width, height) + features
    }

    pub fn features(&self, model: &ModelHandle) -> Option<Arc<Features>> {
        let of_model = self.features.iter().filter(|(known, _)| known.is_of(model));
        of_model.map(|(_, features)| features.clone()).next()
    }

    pub fn keep_features(&mut self, model: &ModelHandle, features: Arc<Features>) {
        self.features = Some((model.to_load(), features));
    }

    /// Returns the map of a region that `model` made.
    pub fn map(&mut self, region: Region, model: &ModelHandle) -> Option<Arc<Map>> {
        if self.model.as_ref().is_none_or(|known| !known.is_of(model)) {
            self.maps.clear();
            self.model = Some(model.to_load());
        }
        self.maps.iter().find(|map| map.region == region).cloned()
    }

    /// Keeps a map, and forgets older ones if there are too many.
    pub fn keep(&mut self, map: Arc<Map>) {
        self.maps.push(map);
        let values = |maps: &[Arc<Map>]| maps.iter().map(|map| map.values.len()).sum::<usize>();
        // Keep the first map: it covers the whole picture, and every click needs it.
        while values(&self.maps) > MAX_VALUES && self.maps.len() > 2 {
            self.maps.remove(1);
        }
    }
}
