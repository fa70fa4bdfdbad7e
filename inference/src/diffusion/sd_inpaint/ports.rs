//! Chooses the tensors of a net among the inputs and outputs of its graph.

use ndarray::{Array4, ArrayD, Ix4};

use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Net, Port};

pub(super) fn only_input(
    net: &Net,
    what: &str,
    is_right: impl Fn(&Port) -> bool,
) -> Result<Port, DiffusionError> {
    match net.inputs() {
        [port] if is_right(port) => Ok(port.clone()),
        others => {
            let names: Vec<_> = others.iter().map(|port| format!("`{}`", port.name)).collect();
            let reason = format!("takes {}, but must take only {what}", names.join(", "));
            Err(DiffusionError::unsupported(net.part(), reason))
        }
    }
}

/// Returns the first output with floats and four axes.
pub(super) fn only_output(net: &Net) -> Result<Port, DiffusionError> {
    let output = net.outputs().iter().find(|port| port.element.is_float() && port.rank() == 4);
    output.cloned().ok_or_else(|| {
        DiffusionError::unsupported(net.part(), "has no floating-point output with four axes")
    })
}

pub(super) fn four_axes(
    made: ArrayD<f32>,
    part: &'static str,
    expected: &[usize],
) -> Result<Array4<f32>, DiffusionError> {
    if made.shape() != expected {
        let reason = format!("returned shape {:?} instead of {expected:?}", made.shape());
        return Err(DiffusionError::unsupported(part, reason));
    }
    made.into_dimensionality::<Ix4>()
        .map_err(|error| DiffusionError::unsupported(part, error.to_string()))
}
