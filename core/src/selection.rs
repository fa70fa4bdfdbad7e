//! Click to select: what the API asks a worker, and what the worker answers. Nothing is stored or charged.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ImageId;
use crate::queue::{Reply, Request};

/// Maximum number of points in a request, positive and negative together.
pub const MAX_POINTS: usize = 64;

/// A pixel of an image: its column and row, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImagePoint {
    /// The column.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub x: u32,
    /// The row.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub y: u32,
}

/// A rectangle of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImageBox {
    /// The first column.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub x: u32,
    /// The first row.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    pub y: u32,
    /// The number of columns.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub width: u32,
    /// The number of rows.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub height: u32,
}

/// What to select: the object at the positive points, the object in a box, or the subject of the picture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SelectRequest))]
#[serde(deny_unknown_fields)]
pub struct Clicks {
    /// Points that belong to the selection.
    #[serde(default)]
    pub positive: Vec<ImagePoint>,
    /// Points outside it; the areas that they mark are removed.
    #[serde(default)]
    pub negative: Vec<ImagePoint>,
    /// The rectangle in which something is selected.
    #[serde(default, rename = "box")]
    pub area: Option<ImageBox>,
    /// Selects the subject of the picture, wherever it is.
    #[serde(default)]
    pub subject: bool,
}

/// Why clicks were rejected. API users see the texts: each is a sentence without its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClicksError {
    /// Nothing says what to select.
    #[error("Send a positive point, a box, or \"subject\": true")]
    Nothing,
    #[error("At most {MAX_POINTS} points can be sent")]
    TooMany,
    /// A point is not a pixel of the image.
    #[error("The point {}, {} is outside the image of {} × {} pixels", point.x, point.y, size.0, size.1)]
    PointOutside {
        point: ImagePoint,
        /// The image's width and height.
        size: (u32, u32),
    },
    /// The box is empty or reaches beyond the image.
    #[error("The box must be at least 1 pixel wide and high, and lie inside the image of {} × {} pixels", size.0, size.1)]
    BoxOutside {
        /// The image's width and height.
        size: (u32, u32),
    },
}

impl Clicks {
    /// Checks that the clicks say what to select in an image of `size` (width, height).
    pub fn check(&self, size: (u32, u32)) -> Result<(), ClicksError> {
        if self.positive.is_empty() && self.area.is_none() && !self.subject {
            return Err(ClicksError::Nothing);
        }
        if self.positive.len() + self.negative.len() > MAX_POINTS {
            return Err(ClicksError::TooMany);
        }
        let is_outside = |point: &&ImagePoint| point.x >= size.0 || point.y >= size.1;
        if let Some(point) = self.positive.iter().chain(&self.negative).find(is_outside) {
            return Err(ClicksError::PointOutside { point: *point, size });
        }
        let fits = |at: u32, length: u32, side: u32| {
            length > 0 && u64::from(at) + u64::from(length) <= u64::from(side)
        };
        match self.area {
            Some(area)
                if !fits(area.x, area.width, size.0) || !fits(area.y, area.height, size.1) =>
            {
                Err(ClicksError::BoxOutside { size })
            }
            _ => Ok(()),
        }
    }
}

/// Asks a worker for the selection that clicks mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionRequest {
    /// Distinguishes the reply from others.
    pub id: Uuid,
    pub image: ImageId,
    pub object_key: String,
    pub width: u32,
    pub height: u32,
    pub clicks: Clicks,
}

impl SelectionRequest {
    pub fn new(image: ImageId, object_key: String, size: (u32, u32), clicks: Clicks) -> Self {
        Self { id: Uuid::now_v7(), image, object_key, width: size.0, height: size.1, clicks }
    }
}

impl Request for SelectionRequest {
    const KIND: &'static str = "selections";
    type Failure = SelectionFailure;

    fn id(&self) -> Uuid {
        self.id
    }

    fn unreadable_reply(reason: String) -> SelectionFailure {
        SelectionFailure::Failed(reason)
    }
}

/// A worker's reply: the selection as a PNG of the image's size, white where it is selected, or why there is none.
pub type SelectionReply = Reply<SelectionRequest>;

/// Why a worker selected nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionFailure {
    /// Nothing stands out there, or nothing is left.
    NothingFound,
    ImageMissing,
    ImageUnreadable,
    StorageUnavailable,
    /// The model or the worker failed; the text is for the operator.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u32, u32) = (64, 48);

    #[test]
    fn clicks_inside_the_image_are_accepted() {
        let point = |x, y| ImagePoint { x, y };
        let whole = ImageBox { x: 0, y: 0, width: 64, height: 48 };
        for clicks in [
            Clicks {
                positive: vec![point(63, 47)],
                negative: vec![point(0, 0)],
                ..Clicks::default()
            },
            Clicks { area: Some(whole), ..Clicks::default() },
            Clicks { subject: true, ..Clicks::default() },
        ] {
            assert_eq!(clicks.check(SIZE), Ok(()));
        }
    }

    #[test]
    fn other_clicks_are_rejected_with_a_reason() {
        let point = ImagePoint { x: 64, y: 3 };
        let only_negative =
            Clicks { negative: vec![ImagePoint { x: 1, y: 1 }], ..Clicks::default() };
        assert_eq!(only_negative.check(SIZE), Err(ClicksError::Nothing));
        let outside = Clicks { positive: vec![point], ..Clicks::default() };
        assert_eq!(outside.check(SIZE), Err(ClicksError::PointOutside { point, size: SIZE }));
        let inside = ImagePoint { x: 1, y: 1 };
        let many = Clicks { positive: vec![inside; MAX_POINTS + 1], ..Clicks::default() };
        assert_eq!(many.check(SIZE), Err(ClicksError::TooMany));
        for area in [
            ImageBox { x: 0, y: 0, width: 0, height: 5 },
            ImageBox { x: 60, y: 0, width: 5, height: 5 },
            ImageBox { x: 0, y: u32::MAX, width: 5, height: u32::MAX },
        ] {
            let clicks = Clicks { area: Some(area), ..Clicks::default() };
            assert_eq!(clicks.check(SIZE), Err(ClicksError::BoxOutside { size: SIZE }));
        }
    }
}
