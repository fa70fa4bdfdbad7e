//! The batch step: a net takes batches only if one gives the same outputs as single runs of the file as it is. Opens the
//! batch axis of a net whose exporter fixed it at 1.

use ndarray::Array4;
use tracing::warn;

use super::checksum::Files;
use super::engine::{differ, joined};
use super::run::{self, run, sample_inputs};
use crate::manifest::NetTask;
use crate::onnx::batch_axis;
use crate::registry::kept::BatchAxis;
use crate::registry::steps::Outcome;
use crate::session::{ExtraFile, PictureNet, Runtime, SessionError};
use crate::tensor::relative_difference;

/// Returns a session that takes batches, or `original`, or an equal one, that takes one input at a time.
pub fn open(
    name: &str,
    original: PictureNet,
    task: NetTask<'_>,
    files: &Files,
    runtime: &Runtime,
) -> Outcome<PictureNet> {
    let inputs = sample_inputs(task);
    if original.takes_batches() {
        prove(name, original, &inputs)
    } else {
        open_axis(name, original, task, files, runtime, &inputs)
    }
}

/// Opens a model as the batch step left it.
///
/// # Errors
/// Same as [`Runtime::open_net`].
pub fn open_known(
    runtime: &Runtime,
    task: NetTask<'_>,
    batch_axis: BatchAxis,
    model: &[u8],
    extra: &[ExtraFile],
) -> Result<PictureNet, SessionError> {
    match batch_axis {
        BatchAxis::AsInFile => run::open(runtime, task, model, extra),
        BatchAxis::Opened => {
            let opened = batch_axis::open(model, task.input()).map_err(SessionError::Failed)?;
            run::open(runtime, task, &opened, extra)
        }
        BatchAxis::Unused => {
            let mut net = run::open(runtime, task, model, extra)?;
            net.run_alone();
            Ok(net)
        }
    }
}

/// Compares a batch with single runs of a net whose file leaves the batch axis open, which proves nothing: the graph may
/// hold a constant of one input, or reduce over all axes.
fn prove(name: &str, mut net: PictureNet, inputs: &[Array4<u8>; 2]) -> Outcome<PictureNet> {
    let compared = single_outputs(&mut net, inputs).and_then(|singles| {
        let batch = run(&mut net, &joined(inputs)?)?;
        accept(&joined(&singles)?, &batch.values())
    });
    match compared {
        Ok(()) => Outcome::passed(
            "takes batches as it is; one gives what single runs give".to_owned(),
            net,
        ),
        Err(reason) => {
            net.run_alone();
            alone(name, net, &reason)
        }
    }
}

fn open_axis(
    name: &str,
    mut original: PictureNet,
    task: NetTask<'_>,
    files: &Files,
    runtime: &Runtime,
    inputs: &[Array4<u8>; 2],
) -> Outcome<PictureNet> {
    let prepared = batch_axis::open(&files.model, task.input())
        .and_then(|opened| Ok((opened, single_outputs(&mut original, inputs)?)));
    let (opened, singles) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => return alone(name, original, &reason),
    };
    // Otherwise its weights would stay in memory, too.
    drop(original);
    let proven = run::open(runtime, task, &opened, &files.extra)
        .map_err(|error| error.to_string())
        .and_then(|mut net| {
            let difference = difference(&mut net, inputs, &singles)?;
            Ok((net, difference))
        });
    match proven {
        Ok((net, difference)) => Outcome::passed(
            format!(
                "opened the batch axis; a batch differs from single runs by {difference:.5} of the largest value"
            ),
            net,
        ),
        Err(reason) => match run::open(runtime, task, &files.model, &files.extra) {
            Ok(net) => alone(name, net, &reason),
            Err(error) => Outcome::refused(format!("it cannot be opened again: {error}")),
        },
    }
}

/// Accepts a net that takes one input at a time. Logs why.
fn alone(name: &str, net: PictureNet, reason: &str) -> Outcome<PictureNet> {
    warn!(model.name = name, reason, "Model {name} takes one input at a time: {reason}");
    Outcome::passed(format!("takes one input at a time: {reason}"), net)
}

/// Returns the values of each input's own run.
fn single_outputs(
    net: &mut PictureNet,
    inputs: &[Array4<u8>; 2],
) -> Result<[Array4<f32>; 2], String> {
    Ok([run(net, &inputs[0])?.values(), run(net, &inputs[1])?.values()])
}

/// Runs a batch, and its first input alone. Returns the largest difference from `singles`.
///
/// # Errors
/// If it is too large, or a run fails.
fn difference(
    net: &mut PictureNet,
    inputs: &[Array4<u8>; 2],
    singles: &[Array4<f32>; 2],
) -> Result<f32, String> {
    let outputs = [
        (joined(singles)?, run(net, &joined(inputs)?)?.values()),
        (singles[0].clone(), run(net, &inputs[0])?.values()),
    ];
    outputs.iter().try_for_each(|(expected, found)| accept(expected, found))?;
    let differences = outputs.iter().map(|(expected, found)| relative_difference(expected, found));
    Ok(differences.fold(0.0, f32::max))
}

/// Refuses a batch whose inputs reach each other's outputs, not one that is only rounded differently: cuDNN may run a batch
/// on tensor cores, with 10 bits of mantissa, and a single input without. That changes values of u2netp by 0.028 of the
/// largest (TF32 rounding, emulated on a CPU).
fn accept(singles: &Array4<f32>, batch: &Array4<f32>) -> Result<(), String> {
    let reason = differ(singles, batch);
    reason.map_or(Ok(()), |reason| Err(format!("a batch differs from single runs: {reason}")))
}
