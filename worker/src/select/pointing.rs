//! Selects with a model that segments the object at a click.

use std::sync::Arc;

use retouch_inference::manifest::SegmentAnything;
use retouch_inference::registry::ModelHandle;
use retouch_inference::segment_anything::{Features, Prompt};
use retouch_pixels::alpha::{self, MapRange, Reading};
use retouch_pixels::framing::Frame;
use retouch_pixels::select::{Map, Marks, Point, Prior, Region, Subject};

use super::known::Known;
use crate::pixel_pool::PixelPool;
use crate::tools::ToolError;

/// Returns a rough selection of what `marks` point at.
pub async fn prior(
    pixels: &PixelPool,
    model: &ModelHandle,
    contract: &SegmentAnything,
    known: &mut Known,
    marks: &Marks,
) -> Result<Prior, ToolError> {
    let size = known.scene().reduced_size();
    let input = &contract.input;
    let frame = input.framing().frame(size, (input.width, input.height));
    let features = features(pixels, model, contract, known).await?;
    let mask = model.find_mask(features, prompt(marks, size, &frame)).await?;
    let scene = known.scene().clone();
    pixels
        .run(move || {
            let reading = Reading { range: MapRange::Sigmoid, channel: 0 };
            let values = alpha::enlarge_map(&mask.logits, reading, &frame, size)?;
            let map = Map { region: Region::whole(size), values };
            let mut prior = Prior::new(&scene);
            if let Some(object) = Subject::all(&map, size) {
                prior.add(&object);
            }
            Ok(prior)
        })
        .await?
}

/// Returns the features of a picture, from an earlier click if there was one.
async fn features(
    pixels: &PixelPool,
    model: &ModelHandle,
    contract: &SegmentAnything,
    known: &mut Known,
) -> Result<Arc<Features>, ToolError> {
    if let Some(features) = known.features(model) {
        return Ok(features);
    }
    let (scene, input) = (known.scene().clone(), contract.input.clone());
    let picture = pixels
        .run(move || {
            let whole = Region::whole(scene.reduced_size());
            input.to_tensor(&scene.cut(whole, input.width.max(input.height)))
        })
        .await?;
    let features = Arc::new(model.find_features(picture).await?);
    known.keep_features(model, features.clone());
    Ok(features)
}

/// Translates marks in a picture of `size` to the model's input, where the picture fills `frame`.
fn prompt(marks: &Marks, size: (u32, u32), frame: &Frame) -> Prompt {
    let along = |at: f32, side: u32, start: u32, length: u32| {
        start as f32 + at * length as f32 / side as f32
    };
    let (width, height) = frame.content();
    let place = |x: f32, y: f32| {
        (along(x, size.0, frame.x.start, width), along(y, size.1, frame.y.start, height))
    };
    let middles = |points: &[Point]| {
        points.iter().map(|at| place(at.x as f32 + 0.5, at.y as f32 + 0.5)).collect()
    };
    let corners = marks.area.map(|area| {
        let (left, top) = (area.left as f32, area.top as f32);
        [place(left, top), place(left + area.width as f32, top + area.height as f32)]
    });
    Prompt { positive: middles(&marks.positive), negative: middles(&marks.negative), corners }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_placed_in_the_part_of_the_input_that_shows_the_picture() {
        let marks = Marks {
            positive: vec![Point { x: 0, y: 0 }],
            negative: vec![Point { x: 99, y: 49 }],
            area: Some(Region { left: 50, top: 25, width: 50, height: 25 }),
        };
        let frame = Frame { size: (200, 200), x: 0..200, y: 50..150 };
        let prompt = prompt(&marks, (100, 50), &frame);
        assert_eq!(prompt.positive, [(1.0, 51.0)]);
        assert_eq!(prompt.negative, [(199.0, 149.0)]);
        assert_eq!(prompt.corners, Some([(100.0, 100.0), (200.0, 150.0)]));
    }
}
