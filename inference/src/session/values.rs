//! Converts between pictures, f32 `[batch, channel, row, column]`, and the tensors of a net's graph.

use half::f16;
use ndarray::Array4;
use ort::session::SessionInputValue;
use ort::value::{DynTensor, Tensor, TensorElementType, TensorRef, TensorValueTypeMarker, Value};

use crate::tensor::{self, Element, Format, Layout, Tensors};

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

/// Writes a picture into an input that is kept between runs.
pub fn write_input(
    picture: &Array4<f32>,
    tensors: &Tensors<'_>,
    kept: &mut DynTensor,
) -> ort::Result<()> {
    let Format { element, layout } = tensors.input_format;
    match element {
        Element::F32 => tensor::write(picture, layout, kept.try_extract_array_mut::<f32>()?),
        Element::F16 => tensor::write(picture, layout, kept.try_extract_array_mut::<f16>()?),
        Element::U8 => tensor::write(picture, layout, kept.try_extract_array_mut::<u8>()?),
    }
    Ok(())
}

/// Returns the values of an output.
pub fn read_output<T: TensorValueTypeMarker + ?Sized>(
    output: &Value<T>,
    tensors: &Tensors<'_>,
) -> ort::Result<Array4<f32>> {
    let Tensors { output: name, output_format: Format { element, layout }, white, .. } = *tensors;
    let values = match element {
        Element::F32 => tensor::decode(output.try_extract_array::<f32>()?, layout, white),
        Element::F16 => tensor::decode(output.try_extract_array::<f16>()?, layout, white),
        Element::U8 => tensor::decode(output.try_extract_array::<u8>()?, layout, white),
    };
    values.map_err(|reason| ort::Error::new(format!("output {name:?}: {reason}")))
}

/// Returns the values of an output of any shape, in row-major order.
pub fn read_flat<T: TensorValueTypeMarker + ?Sized>(output: &Value<T>) -> ort::Result<Vec<f32>> {
    if let Ok(values) = output.try_extract_array::<f16>() {
        return Ok(values.iter().map(|value| value.to_f32()).collect());
    }
    Ok(output.try_extract_array::<f32>()?.iter().copied().collect())
}

/// Returns the element type as ONNX Runtime names it.
pub const fn onnx_type(element: Element) -> TensorElementType {
    match element {
        Element::F32 => TensorElementType::Float32,
        Element::F16 => TensorElementType::Float16,
        Element::U8 => TensorElementType::Uint8,
    }
}
