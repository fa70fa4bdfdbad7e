//! The comparison of an engine with the session that serves until it is built.

use ndarray::{Array4, Axis, concatenate};

use super::golden;
use super::run::{run, sample_inputs};
use crate::manifest::{Manifest, NetTask};
use crate::registry::steps::Outcome;
use crate::session::{PictureNet, Runtime};
use crate::tensor::{mean_difference, relative_difference};

/// Maximum accepted mean difference, relative to the largest value: the tolerance of golden images for half precision.
const MEAN_TOLERANCE: f32 = 0.01;
/// Maximum accepted difference of one value, relative to the largest one. At the edges of a subject, half precision can
/// move some values far.
const TOLERANCE: f32 = 0.2;

/// An input, and the values of its output.
type Pair = (Array4<u8>, Array4<f32>);

/// Inputs with the outputs of the net that serves.
pub struct Reference {
    inputs: [Array4<u8>; 2],
    outputs: [Array4<f32>; 2],
}

impl Reference {
    /// Runs the net that serves on samples.
    ///
    /// # Errors
    /// If a run fails.
    pub fn record(net: &mut PictureNet, task: NetTask<'_>) -> Result<Self, String> {
        let inputs = sample_inputs(task);
        let outputs = [run(net, &inputs[0])?.values(), run(net, &inputs[1])?.values()];
        Ok(Self { inputs, outputs })
    }

    /// Returns the pairs to compare: each input alone and, if the engine takes batches, both together.
    fn pairs(&self, has_batches: bool) -> Result<Vec<Pair>, String> {
        let alone = self.inputs.iter().cloned().zip(self.outputs.iter().cloned());
        let mut pairs: Vec<_> = alone.collect();
        if has_batches {
            pairs.push((joined(&self.inputs)?, joined(&self.outputs)?));
        }
        Ok(pairs)
    }
}

/// Returns two inputs, or their outputs, as a batch.
///
/// # Errors
/// If their sizes differ.
pub fn joined<T: Clone>(both: &[Array4<T>; 2]) -> Result<Array4<T>, String> {
    concatenate(Axis(0), &[both[0].view(), both[1].view()]).map_err(|error| error.to_string())
}

/// Compares an engine with the net that serves and with every golden image, and runs it on the largest shape, so
/// that it has taken all its memory. `may_go_on` is asked before each run.
///
/// # Errors
/// Why the engine must not serve; `None` if `may_go_on` returned false.
pub fn compare(
    engine: &mut PictureNet,
    (manifest, task): (&Manifest, NetTask<'_>),
    runtime: &Runtime,
    reference: &Reference,
    may_go_on: impl Fn() -> bool,
) -> Result<(), Option<String>> {
    let proceed = || may_go_on().then_some(()).ok_or(None);
    let shapes = task.input_shapes(runtime.batching().0, runtime.tile_memory_bytes());
    let [most, ..] = shapes.most;
    let has_batches = most > 1 && engine.takes_batches();
    for (input, expected) in reference.pairs(has_batches).map_err(Some)? {
        proceed()?;
        let mut output = run(engine, &input).map_err(Some)?.values();
        if runtime.faults().are_engines_wrong() {
            output.map_inplace(|value| *value += 0.5);
        }
        differ(&expected, &output).map_or(Ok(()), |reason| Err(Some(reason)))?;
    }
    proceed()?;
    let [_, rows, columns, channels] = shapes.most;
    let largest = (if has_batches { most } else { 1 }, rows, columns, channels);
    run(engine, &Array4::zeros(largest)).map_err(Some)?;
    for golden in &manifest.golden {
        proceed()?;
        let Outcome { reasons, .. } = golden::compare(engine, task, &manifest.folder, golden);
        if !reasons.is_empty() {
            return Err(Some(reasons.join("; ")));
        }
    }
    Ok(())
}

/// Returns how outputs differ, if they differ too much.
pub fn differ(expected: &Array4<f32>, found: &Array4<f32>) -> Option<String> {
    let differences = [
        ("mean", mean_difference(expected, found), MEAN_TOLERANCE),
        ("largest", relative_difference(expected, found), TOLERANCE),
    ];
    let too_large =
        differences.into_iter().find(|(_, found, accepted)| found.is_nan() || found > accepted);
    too_large.map(|(which, found, accepted)| {
        format!(
            "the {which} difference of a sample is {found} of the largest value, but at most {accepted} is accepted"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: [f32; 4]) -> Array4<f32> {
        Array4::from_shape_vec((1, 1, 1, 4), values.to_vec()).unwrap()
    }

    #[test]
    fn rounding_is_accepted_and_garbage_is_not() {
        let expected = of([0.0, 0.5, 1.0, -1.0]);
        assert_eq!(differ(&expected, &of([0.004, 0.496, 1.004, -1.0])), None);
        for (found, word) in [
            (of([0.1, 0.6, 1.1, -1.0]), "mean"),
            (of([0.0, 0.5, f32::NAN, -1.0]), "mean"),
            (Array4::zeros((1, 1, 2, 2)), "mean"),
        ] {
            let reason = differ(&expected, &found).unwrap();
            assert!(reason.contains(word), "{reason}");
        }
        let mut many = Array4::ones((1, 1, 10, 10));
        let expected = many.clone();
        many[[0, 0, 3, 3]] = 0.5;
        assert!(differ(&expected, &many).unwrap().contains("largest"));
    }
}
