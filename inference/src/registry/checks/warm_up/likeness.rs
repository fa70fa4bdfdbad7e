//! Compares a model's result with its input picture. A model that swaps colors or shifts them would otherwise serve
//! until a person looks at a result.

use ndarray::Array4;

use crate::manifest::Upscale;
use crate::output::Output;

/// Maximum accepted mean difference of a channel, for samples in 0..=1. A net that cleans or sharpens changes far less,
/// a net with a wrong input or output layout far more.
const TOLERANCE: f64 = 0.15;

/// The sum of the differences of each channel, and their number.
#[derive(Default)]
pub struct Differences {
    sums: [f64; 3],
    count: f64,
}

impl Differences {
    /// Adds a pixel: its value, and the value that it should resemble; R, G, B in 0..=255.
    pub fn add(&mut self, found: [f64; 3], expected: [f64; 3]) {
        for channel in 0..3 {
            self.sums[channel] += (found[channel] - expected[channel]).abs();
        }
        self.count += 1.0;
    }

    /// Describes the first channel that differs too much, such as "red differs by 0.42 of 1 on average".
    pub fn describe(&self) -> Option<String> {
        let means = self.sums.map(|sum| sum / self.count.max(1.0) / 255.0);
        let mut channels = ["red", "green", "blue"].into_iter().zip(means);
        let (name, mean) = channels.find(|(_, mean)| *mean > TOLERANCE)?;
        Some(format!(
            "{name} differs by {mean:.2} of 1 on average, but at most {TOLERANCE} is accepted"
        ))
    }
}

/// Compares an upscaled picture, reduced to its own size, with its input.
pub fn find_difference(upscale: &Upscale, input: &Array4<u8>, output: &Output) -> Option<String> {
    let Output::Pictures { samples, .. } = output else { return None };
    let (scale, samples) = (upscale.upscale.scale as usize, samples.view());
    let (_, rows, columns, _) = input.dim();
    let mut differences = Differences::default();
    for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
        let block = (0..scale * scale).map(|at| (y * scale + at / scale, x * scale + at % scale));
        let mean = |channel| {
            let sum: f64 = block.clone().map(|(y, x)| f64::from(samples[[0, y, x, channel]])).sum();
            sum / (scale * scale) as f64
        };
        let own = [0, 1, 2].map(|channel| f64::from(input[[0, y, x, channel]]));
        differences.add([0, 1, 2].map(mean), own);
    }
    let found = differences.describe()?;
    Some(format!(
        "the result does not resemble the picture: {found}; check output.white, input.divide_by, input.mean, and the order \
         R, G, B"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::manifest::{Manifest, NetTask, Task};
    use crate::output::Extremes;
    use crate::registry::checks::run::sample_inputs;

    /// Enlarges the warm-up picture by repeating pixels, and changes each.
    fn difference(change: impl Fn([u8; 3]) -> [u8; 3]) -> Option<String> {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny/upscale-x2");
        let Task::Upscale(upscale) = Manifest::read(&models).unwrap().task else { panic!() };
        let [input, _] = sample_inputs(NetTask::Upscale(&upscale));
        let (_, rows, columns, _) = input.dim();
        let samples = Array4::from_shape_fn((1, 2 * rows, 2 * columns, 3), |(_, y, x, channel)| {
            change([0, 1, 2].map(|channel| input[[0, y / 2, x / 2, channel]]))[channel]
        });
        let extremes = vec![Some(Extremes { least: 0.0, largest: 1.0 })];
        let samples = samples.into();
        find_difference(&upscale, &input, &Output::Pictures { samples, extremes })
    }

    #[test]
    fn sharper_and_slightly_other_colors_are_accepted() {
        assert_eq!(difference(|pixel| pixel), None);
        assert_eq!(difference(|pixel| pixel.map(|sample| sample.saturating_add(25))), None);
    }

    #[test]
    fn black_swapped_and_inverted_colors_are_not() {
        for (change, channel) in [
            ((|_| [0; 3]) as fn([u8; 3]) -> [u8; 3], "red differs by 0.3"),
            (|[red, green, blue]| [blue, green, red], "red differs by 0."),
            (|pixel| pixel.map(|sample| 255 - sample), "red differs by 0."),
            (|[red, _, blue]| [red, 0, blue], "green differs by 0.3"),
        ] {
            let found = difference(change).unwrap();
            assert!(found.contains(channel), "{found}");
        }
    }
}
