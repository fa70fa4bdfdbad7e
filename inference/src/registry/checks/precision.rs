//! The precision step: makes a net compute in 16 bits, and keeps the result only if its outputs are nearly the same as
//! the outputs of the unchanged file.

use ndarray::Array4;
use tracing::warn;

use super::checksum::Files;
use super::run::{self, run, sample_inputs};
use crate::device::Device;
use crate::manifest::NetTask;
use crate::onnx::half_precision::{self, Converted, Form};
use crate::registry::steps::Outcome;
use crate::session::{PictureNet, Runtime, SessionError};
use crate::tensor::mean_difference;

/// Maximum accepted mean difference from the outputs in 32 bits, relative to the largest value. A net that overflows
/// or loses its subject differs by far more; golden images judge what remains.
const TOLERANCE: f32 = 0.01;

/// A net, with the bytes that it was opened from if they differ from the file's bytes.
type Opened = (PictureNet, Option<Vec<u8>>);

/// Returns a net that computes in 16 bits, or `original`, or an equal one, if that is not possible.
pub fn open(
    name: &str,
    mut original: PictureNet,
    task: NetTask<'_>,
    files: &Files,
    runtime: &Runtime,
) -> Outcome<Opened> {
    let inputs = sample_inputs(task);
    let prepared = convert(runtime, &files.model).and_then(|converted| {
        let outputs =
            inputs.iter().map(|input| Ok::<_, String>(run(&mut original, input)?.values()));
        Ok((converted, outputs.collect::<Result<Vec<_>, _>>()?))
    });
    let (Converted { file, clamped }, expected) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => {
            return Outcome::passed(in_full(name, &reason), (original, None));
        }
    };
    // Otherwise the weights would be in memory twice.
    drop(original);
    let opened = run::open(runtime, task, &file, &files.extra);
    let proven = opened.map_err(|error| error.to_string()).and_then(|mut net| {
        let difference = difference(&mut net, &inputs, &expected)?;
        Ok((net, difference))
    });
    match proven {
        Ok((net, difference)) => {
            let clamped = match clamped {
                0 => String::new(),
                count => format!("; {count} weights were clamped to what 16 bits hold"),
            };
            let finding = format!(
                "computes in 16 bits; the outputs differ by {difference:.5} of the largest value on average, accepted \
                 {TOLERANCE}{clamped}"
            );
            Outcome::passed(finding, (net, Some(file)))
        }
        Err(reason) => open_in_full(name, &reason, task, files, runtime),
    }
}

/// Opens the file as it is, because 16 bits are not enough.
pub fn open_in_full(
    name: &str,
    reason: &str,
    task: NetTask<'_>,
    files: &Files,
    runtime: &Runtime,
) -> Outcome<Opened> {
    match run::open(runtime, task, &files.model, &files.extra) {
        Ok(net) => Outcome::passed(in_full(name, reason), (net, None)),
        Err(error) => Outcome::refused(format!("it cannot be opened again: {error}")),
    }
}

/// Returns the bytes of a model that computed in 16 bits before, and was right.
///
/// # Errors
/// If it cannot be rewritten anymore.
pub fn convert_known(runtime: &Runtime, model: &[u8]) -> Result<Vec<u8>, SessionError> {
    let converted = convert(runtime, model).map_err(SessionError::Failed)?;
    Ok(converted.file)
}

fn convert(runtime: &Runtime, model: &[u8]) -> Result<Converted, String> {
    let form = match runtime.device() {
        Device::Cpu => Form::Rounded,
        Device::Cuda => Form::Stored,
    };
    half_precision::convert(model, form)
}

/// Logs why a model computes as its file says. Returns the same for people.
fn in_full(name: &str, reason: &str) -> String {
    warn!(model.name = name, reason, "Model {name} does not compute in 16 bits: {reason}");
    format!("does not compute in 16 bits: {reason}")
}

/// Returns the largest mean difference from `expected`, relative to its largest value.
///
/// # Errors
/// If it is too large or not a number, or a run fails.
fn difference(
    net: &mut PictureNet,
    inputs: &[Array4<u8>],
    expected: &[Array4<f32>],
) -> Result<f32, String> {
    let mut largest = 0.0_f32;
    for (input, expected) in inputs.iter().zip(expected) {
        let found = run(net, input)?;
        if !found.is_finite() {
            return Err("some outputs are not finite then".to_owned());
        }
        let difference = mean_difference(expected, &found.values());
        if difference.is_nan() || difference > TOLERANCE {
            return Err(format!(
                "the outputs would differ by {difference} of the largest value on average, but at most {TOLERANCE} is \
                 accepted"
            ));
        }
        largest = largest.max(difference);
    }
    Ok(largest)
}
