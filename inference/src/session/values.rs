//! Converts between pictures, f32 `[batch, channel, row, column]`, and the tensors of a net's graph.

use half::f16;
use ndarray::Array4;
use ort::session::SessionInputValue;
use ort::value::{Tensor, TensorRef, TensorValueTypeMarker, Value};

use crate::tensor::{self, Element, Format, Layout};

/// Returns an input for a run. Borrows the picture if the graph stores it in the same way.
pub fn input_value(
    picture: &Array4<f32>,
    Format { element, layout }: Format,
) -> ort::Result<SessionInputValue<'_>> {
    Ok(match (element, layout) {
        (Element::F32, Layout::Nchw) => TensorRef::from_array_view(picture.view())?.into(),
        (Element::F32, _) => Tensor::from_array(tensor::encode::<f32>(picture, layout))?.into(),
        (Element::F16, _) => Tensor::from_array(tensor::encode::<f16>(picture, layout))?.into(),
        (Element::U8, _) => Tensor::from_array(tensor::encode::<u8>(picture, layout))?.into(),
    })
}

pub fn read_output<T: TensorValueTypeMarker + ?Sized>(
    output: &Value<T>,
    name: &str,
    Format { element, layout }: Format,
) -> ort::Result<Array4<f32>> {
    let values = match element {
        Element::F32 => tensor::decode(output.try_extract_array::<f32>()?, layout),
        Element::F16 => tensor::decode(output.try_extract_array::<f16>()?, layout),
        Element::U8 => tensor::decode(output.try_extract_array::<u8>()?, layout),
    };
    values.map_err(|reason| ort::Error::new(format!("output {name:?}: {reason}")))
}

/// Returns the values of an output of any shape, in row-major order.
pub fn read_flat<T: TensorValueTypeMarker + ?Sized>(output: &Value<T>) -> ort::Result<Vec<f32>> {
    if let Ok(values) = output.try_extract_array::<f16>() {
        return Ok(values.iter().map(|value| value.to_f32()).collect());
    }
    if let Ok(values) = output.try_extract_array::<u8>() {
        return Ok(values.iter().map(|value| f32::from(*value)).collect());
    }
    Ok(output.try_extract_array::<f32>()?.iter().copied().collect())
}
