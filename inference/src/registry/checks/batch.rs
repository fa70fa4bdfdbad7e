//! The batch step: opens the batch axis of a net whose exporter fixed it at 1, and keeps the result only if a batch gives
//! the same outputs as single runs of the file as it is.

use ndarray::{Array4, Axis, ShapeError, concatenate};
use tracing::warn;

use super::checksum::Files;
use super::run::{self, run, sample_inputs};
use crate::manifest::NetTask;
use crate::onnx::batch_axis;
use crate::registry::steps::Outcome;
use crate::session::{ExtraFile, PictureNet, Runtime, SessionError};
use crate::tensor::relative_difference;

/// The largest accepted difference between a batch and single runs, relative to the largest value. Another order of
/// summation, on tensor cores with 10 bits of mantissa, causes less; inputs that reach each other's outputs far more.
const TOLERANCE: f32 = 0.02;

/// Returns a session that takes batches, or `original`, or an equal one, if that is not possible.
pub fn open(
    name: &str,
    mut original: PictureNet,
    task: NetTask<'_>,
    files: &Files,
    runtime: &Runtime,
) -> Outcome<PictureNet> {
    let alone = |net, reason: &str| {
        warn!(model.name = name, reason, "Model {name} takes one input at a time: {reason}");
        Outcome::passed(format!("takes one input at a time: {reason}"), net)
    };
    let inputs = sample_inputs(task);
    let prepared = batch_axis::open(&files.model, task.input()).and_then(|opened| {
        let single = |input| Ok::<_, String>(run(&mut original, input)?.values());
        Ok((opened, inputs.iter().map(single).collect::<Result<Vec<_>, _>>()?))
    });
    let (opened, singles) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => return alone(original, &reason),
    };
    // The weights are not in memory twice.
    drop(original);
    let proven = run::open(runtime, task, &opened, &files.extra)
        .map_err(|error| error.to_string())
        .and_then(|mut net| {
            let difference = difference(&mut net, &inputs, &singles)?;
            Ok((net, difference))
        });
    match proven {
        Ok((net, difference)) => Outcome::passed(
            format!(
                "opened the batch axis; a batch differs from single runs by {difference:.5} of the largest value, \
                 accepted {TOLERANCE}"
            ),
            net,
        ),
        Err(reason) => match run::open(runtime, task, &files.model, &files.extra) {
            Ok(net) => alone(net, &reason),
            Err(error) => Outcome::refused(format!("it cannot be opened again: {error}")),
        },
    }
}

/// Opens a model whose batch axis was opened before, and was right.
///
/// # Errors
/// Same as [`Runtime::open_net`].
pub fn open_known(
    runtime: &Runtime,
    task: NetTask<'_>,
    model: &[u8],
    extra: &[ExtraFile],
) -> Result<PictureNet, SessionError> {
    let opened = batch_axis::open(model, task.input()).map_err(SessionError::Failed)?;
    run::open(runtime, task, &opened, extra)
}

/// Runs a batch, and its first input alone. Returns the largest difference from `singles`.
///
/// # Errors
/// If it is too large, or a run fails.
fn difference(
    net: &mut PictureNet,
    inputs: &[Array4<u8>; 2],
    singles: &[Array4<f32>],
) -> Result<f32, String> {
    let failed = |error: ShapeError| error.to_string();
    let [first, second] = inputs;
    let together = concatenate(Axis(0), &[first.view(), second.view()]).map_err(failed)?;
    let singles_views: Vec<_> = singles.iter().map(|single| single.view()).collect();
    let expected = concatenate(Axis(0), &singles_views).map_err(failed)?;
    let batch = run(net, &together)?;
    let alone = run(net, first)?;
    let differences = [
        relative_difference(&expected, &batch.values()),
        relative_difference(&singles[0], &alone.values()),
    ];
    match differences.into_iter().find(|found| found.is_nan() || *found > TOLERANCE) {
        None => Ok(differences[0].max(differences[1])),
        Some(found) => Err(format!(
            "a batch differs from single runs by {found} of the largest value, but at most {TOLERANCE} is accepted"
        )),
    }
}
