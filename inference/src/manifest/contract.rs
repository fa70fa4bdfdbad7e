//! Types that the contracts of several tasks share.

use std::ops::RangeInclusive;

use serde::Deserialize;

pub use crate::tensor::{Element, Layout, Precision};

/// The accepted distance between black and white in an input. Nets take floats that are 1 to 5 apart, or samples of 0..=255.
const SPANS: RangeInclusive<f32> = 0.5..=300.0;
/// Maximum mean, relative to the largest sample. After a division by 256, a mean of 1 is slightly above.
const SLACK: f32 = 1.01;

/// The output to fetch from a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The tensor's name in the graph.
    pub name: String,
}

/// The output of a net with one input and one output: a map or a picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetOutput {
    /// The tensor's name in the graph.
    pub name: String,
    #[serde(default)]
    pub element: Element,
    #[serde(default)]
    pub layout: Layout,
    /// The value of white; `None` for 1, or 255 in bytes.
    pub white: Option<f32>,
    /// The width in pixels; `None` for the input's. Maps only.
    pub width: Option<u32>,
    /// The height in pixels; `None` for the input's. Maps only.
    pub height: Option<u32>,
}

impl NetOutput {
    /// Returns an output in f32 `[batch, channel, row, column]`.
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            element: Element::F32,
            layout: Layout::Nchw,
            white: None,
            width: None,
            height: None,
        }
    }

    pub fn white(&self) -> f32 {
        self.white.unwrap_or(match self.element {
            Element::F32 | Element::F16 => 1.0,
            Element::U8 => 255.0,
        })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let white = self.white();
        if !(white.is_finite() && white > 0.0) {
            return Err(format!("output.white is {white}, but must be a finite number above 0"));
        }
        Ok(())
    }
}

/// Checks the layout of a picture.
pub(super) fn check_picture_layout(field: &str, layout: Layout) -> Result<(), String> {
    match layout {
        Layout::Nchw | Layout::Nhwc => Ok(()),
        Layout::Nhw => Err(format!(
            "{field} is \"nhw\", which has no axis for R, G, and B; use \"nchw\" or \"nhwc\""
        )),
    }
}

/// Checks `(sample / divide_by - mean) / std`; `divide_by` is `None` if it depends on the picture.
pub(super) fn check_normalization(
    element: Element,
    divide_by: Option<f32>,
    mean: &[f32; 3],
    std: &[f32; 3],
) -> Result<(), String> {
    if let Some(divide_by) = divide_by
        && !(divide_by.is_finite() && divide_by > 0.0)
    {
        let text = "but must be a finite number above 0, such as 255";
        return Err(format!("input.divide_by is {divide_by}, {text}"));
    }
    if !mean.iter().all(|mean| mean.is_finite()) {
        return Err(format!("input.mean is {mean:?}, but must hold finite numbers"));
    }
    if !std.iter().all(|std| std.is_finite() && *std > 0.0) {
        return Err(format!("input.std is {std:?}, but must hold finite numbers above 0"));
    }
    check_scale(divide_by, mean, std)?;
    let is = |value: &f32, expected: f32| (value - expected).abs() < f32::EPSILON;
    let is_raw = divide_by.is_some_and(|value| is(&value, 1.0))
        && mean.iter().all(|value| is(value, 0.0))
        && std.iter().all(|value| is(value, 1.0));
    if element == Element::U8 && !is_raw {
        return Err("input.element is \"u8\", so the net gets the samples as they are: set \
                    input.divide_by = 1, input.mean = [0, 0, 0], and input.std = [1, 1, 1]"
            .to_owned());
    }
    Ok(())
}

/// Checks that `mean` and `std` fit the samples after the division, of which `divide_by` is `None` for the largest
/// sample. A net whose input has another scale than in its training finds almost nothing.
fn check_scale(divide_by: Option<f32>, mean: &[f32; 3], std: &[f32; 3]) -> Result<(), String> {
    let largest = 255.0 / divide_by.unwrap_or(255.0);
    let divisor = divide_by.map_or("the largest sample".to_owned(), |number| number.to_string());
    let samples = format!("samples are 0 to {largest} after the division by {divisor}");
    let (smaller, larger) = match divide_by {
        Some(_) if largest > 2.0 => {
            ("decrease it", "set input.divide_by = 255, or multiply mean and std by 255")
        }
        Some(_) => ("divide mean and std by 255, or set input.divide_by = 1", "increase it"),
        None => ("divide mean and std by 255", "increase it"),
    };
    if let Some(mean) = mean.iter().find(|mean| !(0.0..=largest * SLACK).contains(*mean)) {
        let advice = if *mean < 0.0 { "increase it" } else { smaller };
        return Err(format!("input.mean is {mean}, but {samples}: {advice}"));
    }
    let Some(std) = std.iter().find(|std| !SPANS.contains(&(largest / **std))) else {
        return Ok(());
    };
    let advice = if largest / std < *SPANS.start() { smaller } else { larger };
    Err(format!("input.std is {std}, but {samples}: {advice}"))
}
