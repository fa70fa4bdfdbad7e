//! The contract of a model that segments the object at a click: an encoder of pictures and a decoder of clicks.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::segmentation::PictureInput;

/// The contract of a model of the Segment Anything family. `encoder/model.onnx` takes a picture and returns its
/// features; `decoder/model.onnx` takes the features and points, and returns masks with a score each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentAnything {
    pub input: PictureInput,
    /// The decoder's inputs that are features, by the encoder's output of another name. An input that is not listed
    /// takes the output of its own name.
    #[serde(default)]
    pub features: BTreeMap<String, String>,
    /// The decoder's other tensors.
    #[serde(default)]
    pub decoder: DecoderPorts,
}

/// The names of a decoder's tensors. The defaults are the names in the usual exports.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecoderPorts {
    /// Input `[1, points, 2]`: x and y of each point, in pixels of the encoder's input.
    pub points: String,
    /// Input `[1, points]`: 1 for a point of the object, 0 for one beside it, 2 and 3 for the first and the last corner
    /// of a box, -1 for none.
    pub labels: String,
    /// Input `[1, 1, h, w]`: an earlier mask. It is always zero. A decoder may have none.
    pub mask: String,
    /// Input `[1]`: whether there is an earlier mask. It is always 0. A decoder may have none.
    pub has_mask: String,
    /// Input `[2]`: the height and width that the decoder resizes its masks to, which are the size of the encoder's
    /// input. A decoder may lack this input.
    pub size: String,
    /// Output `[1, masks, h, w]`: the logits of each mask, which cover the encoder's input.
    pub masks: String,
    /// Output `[1, masks]`: how well each mask is estimated to fit. The best one is taken.
    pub scores: String,
    /// Whether clicks without a box need an additional point with the label -1, as in the first generation of models.
    pub padding_point: bool,
}

impl Default for DecoderPorts {
    fn default() -> Self {
        Self {
            points: "point_coords".to_owned(),
            labels: "point_labels".to_owned(),
            mask: "mask_input".to_owned(),
            has_mask: "has_mask_input".to_owned(),
            size: "orig_im_size".to_owned(),
            masks: "masks".to_owned(),
            scores: "iou_predictions".to_owned(),
            padding_point: false,
        }
    }
}

impl SegmentAnything {
    pub(super) fn check(&self) -> Result<(), String> {
        self.input.check()
    }
}
