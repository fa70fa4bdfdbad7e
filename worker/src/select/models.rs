//! Selects with a model that takes clicks, if one is bound. Otherwise with the net that finds subjects: in the whole
//! picture, and again in a crop around what was found there or around the click.

use std::sync::Arc;

use bytes::Bytes;
use retouch_catalog::{Tier, Tool};
use retouch_inference::bindings::Demand;
use retouch_inference::manifest::{Segmentation, Task};
use retouch_inference::registry::{ModelHandle, Registry};
use retouch_pixels::select::{Map, Marks, Point, Prior, Region, Subject};

use super::known::Known;
use super::pointing;
use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;

/// The tiers whose model for Remove Background selects: the first that is bound. Free runs have the faster model.
const TIERS: [Tier; 3] = [Tier::Free, Tier::Visitor, Tier::Paid];
/// Minimum confidence of a finding that counts as a subject.
const MIN_CONFIDENCE: f32 = 0.45;
/// If a click hits no subject, squares around it are searched. Their sides are these shares of the region's longer side.
const SQUARES: [f32; 2] = [0.5, 0.25];
/// The margin around the bounding box of a subject for the second look.
const MARGIN: f32 = 0.2;
/// The second look is worth it only if the subject with its margin covers less than this share of the searched region.
const MUCH_SMALLER: f32 = 0.7;
/// Minimum overlap of the bounding boxes of both looks; below it, the second look found another subject.
const SAME: f32 = 0.5;

#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The points and the area, in pixels of the reduced copy.
    pub marks: Marks,
    /// The area in pixels of the picture.
    pub clip: Option<Region>,
    /// Selects the subject of the picture or of the area.
    pub subject: bool,
}

/// Selects with the models of a registry. Cheap to clone.
#[derive(Clone)]
pub struct Models {
    registry: Arc<Registry>,
    pixels: PixelPool,
}

impl Models {
    /// Returns the models of `registry` that select. Pixels are processed in `pixels`.
    pub const fn new(registry: Arc<Registry>, pixels: PixelPool) -> Self {
        Self { registry, pixels }
    }

    /// Returns whether a model is bound that can select.
    pub fn is_available(&self) -> bool {
        self.registry.has_selector() || self.demand().is_some()
    }

    fn demand(&self) -> Option<Demand> {
        let demands = TIERS.map(|tier| Demand { tool: Tool::RemoveBackground, tier });
        demands.into_iter().find(|demand| self.registry.is_served(*demand))
    }

    /// Selects in a known picture. Returns the selection as a PNG; `None` if nothing was found.
    pub async fn select(
        &self,
        known: &mut Known,
        wanted: Wanted,
    ) -> Result<Option<Bytes>, ToolError> {
        let prior = self.prior(known, &wanted).await?;
        let scene = known.scene().clone();
        let finish = move || {
            if prior.is_empty() {
                return Ok(None);
            }
            let Some(mut selection) = scene.select(prior, &wanted.marks)? else { return Ok(None) };
            if wanted.clip.is_some_and(|clip| !selection.clip(clip)) {
                return Ok(None);
            }
            Ok::<_, ToolError>(Some(selection.to_png()?))
        };
        self.pixels.run(finish).await?
    }

    async fn selector(&self) -> Result<Option<ModelHandle>, ToolError> {
        self.registry.selector().await.map_err(|error| ToolError::Model(error.to_string()))
    }

    /// Returns a rough selection of what is wanted.
    async fn prior(&self, known: &mut Known, wanted: &Wanted) -> Result<Prior, ToolError> {
        let is_pointed = !wanted.marks.positive.is_empty() || wanted.marks.area.is_some();
        if is_pointed
            && !wanted.subject
            && let Some(model) = self.selector().await?
        {
            let Task::SegmentAnything(contract) = model.task().clone() else {
                return Err(ToolError::Model(format!("{} takes no clicks", model.identity())));
            };
            return pointing::prior(&self.pixels, &model, &contract, known, &wanted.marks).await;
        }
        let Some(demand) = self.demand() else {
            return Err(ToolError::Model("no model for Remove Background is bound".to_owned()));
        };
        let model = self.registry.model_for(demand).await;
        let model = model.map_err(|error| ToolError::Model(error.to_string()))?;
        let Task::Segmentation(contract) = model.task().clone() else {
            return Err(ToolError::Model(format!("{} finds no subjects", model.identity())));
        };
        let size = known.scene().reduced_size();
        let base = match wanted.marks.area {
            Some(area) => area.grown(MARGIN / 2.0, size),
            None => Region::whole(size),
        };
        let mut search =
            Search { pixels: &self.pixels, model, contract: Arc::new(contract), known, size, base };
        let mut prior = Prior::new(search.known.scene());
        if (wanted.subject || wanted.marks.positive.is_empty())
            && let Some(subject) = search.all().await?
        {
            prior.add(&subject);
        }
        for click in &wanted.marks.positive {
            match search.at(*click).await? {
                Some(subject) => prior.add(&subject),
                None => prior.add_color_at(search.known.scene(), *click),
            }
        }
        Ok(prior)
    }
}

/// A search for subjects in one picture.
struct Search<'a> {
    pixels: &'a PixelPool,
    model: ModelHandle,
    contract: Arc<Segmentation>,
    known: &'a mut Known,
    /// The size of the reduced copy.
    size: (u32, u32),
    /// Where to search first: the whole picture, or the area.
    base: Region,
}

impl Search<'_> {
    /// Returns the subjects of the base region.
    async fn all(&mut self) -> Result<Option<Subject>, ToolError> {
        let map = self.map(self.base).await?;
        let Some(found) = Subject::all(&map, self.size) else { return Ok(None) };
        let Some(closer) = self.closer(&found, self.base) else { return Ok(Some(found)) };
        let map = self.map(closer).await?;
        let again = Subject::all(&map, self.size).filter(|again| is_same(&found, again));
        Ok(Some(again.unwrap_or(found)))
    }

    /// Returns the subject at a click.
    async fn at(&mut self, click: Point) -> Result<Option<Subject>, ToolError> {
        let mut best = self.at_in(click, self.base).await?.map(|found| (found, self.base));
        if best.is_none() {
            let longest = self.base.width.max(self.base.height) as f32;
            for share in SQUARES {
                let region = Region::around(click, (longest * share) as u32, self.size);
                let found = self.at_in(click, region).await?;
                let best_yet = best.as_ref().map_or(0.0, |(best, _)| best.confidence);
                if let Some(found) = found.filter(|found| found.confidence > best_yet) {
                    best = Some((found, region));
                }
            }
        }
        let Some((found, region)) = best else { return Ok(None) };
        let Some(closer) = self.closer(&found, region) else { return Ok(Some(found)) };
        let again = self.at_in(click, closer).await?.filter(|again| is_same(&found, again));
        Ok(Some(again.unwrap_or(found)))
    }

    async fn at_in(&mut self, click: Point, region: Region) -> Result<Option<Subject>, ToolError> {
        let map = self.map(region).await?;
        let found = Subject::at(&map, click, self.size);
        Ok(found.filter(|found| found.confidence >= MIN_CONFIDENCE))
    }

    /// Returns the region that shows a subject in more detail.
    fn closer(&self, found: &Subject, region: Region) -> Option<Region> {
        let closer = found.bounds.grown(MARGIN, self.size);
        (closer.pixels() as f32 <= region.pixels() as f32 * MUCH_SMALLER).then_some(closer)
    }

    /// Runs the net on a region, unless its map is known.
    async fn map(&mut self, region: Region) -> Result<Arc<Map>, ToolError> {
        if let Some(map) = self.known.map(region, &self.model) {
            return Ok(map);
        }
        let (scene, contract) = (self.known.scene().clone(), self.contract.clone());
        let input = self
            .pixels
            .run(move || {
                let side = contract.input.width.max(contract.input.height);
                let cut = scene.cut(region, side);
                contract.input.stretched(&contract.input.to_bytes(&cut), (cut.width, cut.height))
            })
            .await?;
        let output = self.model.infer(input).await?.output.into_maps()?;
        let contract = self.contract.clone();
        let values = self
            .pixels
            .run(move || contract.enlarge_map(&output.view(), (region.width, region.height)))
            .await??;
        let map = Arc::new(Map { region, values });
        self.known.keep(map.clone());
        Ok(map)
    }
}

fn is_same(found: &Subject, again: &Subject) -> bool {
    found.bounds.overlap(&again.bounds) >= SAME
}
