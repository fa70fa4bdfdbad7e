//! Types that the contracts of several tasks share.

use serde::Deserialize;

/// The order of a tensor's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Batch, channel, row, column; the channels are R, G, B.
    Nchw,
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// 32-bit floats.
    F32,
}

/// The output to fetch from a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The tensor's name in the graph.
    pub name: String,
}

pub(super) fn check_normalization(mean: &[f32; 3], std: &[f32; 3]) -> Result<(), String> {
    if !mean.iter().all(|mean| mean.is_finite()) {
        return Err("input.mean must hold finite numbers".to_owned());
    }
    if !std.iter().all(|std| std.is_finite() && *std > 0.0) {
        return Err("input.std must hold finite numbers above 0".to_owned());
    }
    Ok(())
}
