//! Element types, and the conversion between arrays and the tensors of a net.

use half::{bf16, f16};
use ndarray::{ArrayD, ArrayViewD, Axis, Slice, Zip};
use ort::memory::Allocator;
use ort::value::{
    DynTensor, PrimitiveTensorElementType, TensorElementType, TensorValueTypeMarker, Value,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    F32,
    F16,
    /// 16-bit floats with the exponents of 32-bit ones.
    Bf16,
    I64,
    I32,
    /// A type that no pipeline uses, by its ONNX name.
    Other(String),
}

impl Element {
    pub const fn is_float(&self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    pub const fn is_integer(&self) -> bool {
        matches!(self, Self::I64 | Self::I32)
    }
}

/// Values for an input. They are cast to the type of the port.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Floats. For an integer port they are truncated toward zero, as optimum does with timesteps.
    Floats(ArrayViewD<'a, f32>),
    Integers(ArrayViewD<'a, i64>),
}

impl Input<'_> {
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::Floats(floats) => floats.shape(),
            Self::Integers(ids) => ids.shape(),
        }
    }
}

pub fn read<T: TensorValueTypeMarker + ?Sized>(
    output: &Value<T>,
    element: &Element,
) -> ort::Result<ArrayD<f32>> {
    Ok(match element {
        Element::F16 => output.try_extract_array::<f16>()?.mapv(f16::to_f32),
        Element::Bf16 => output.try_extract_array::<bf16>()?.mapv(bf16::to_f32),
        _ => output.try_extract_array::<f32>()?.to_owned(),
    })
}

/// Returns values as a tensor in host memory.
pub fn cast(input: &Input<'_>, element: &Element) -> ort::Result<DynTensor> {
    let shape = input.shape().to_vec();
    let mut tensor = DynTensor::new(&Allocator::default(), onnx_type(element)?, shape)?;
    fill(&mut tensor, input, element)?;
    Ok(tensor)
}

/// Writes values into a tensor in host memory, as [`super::Prepared::write`] says.
pub fn fill(tensor: &mut DynTensor, input: &Input<'_>, element: &Element) -> ort::Result<()> {
    match (input, element) {
        (Input::Floats(floats), Element::F32) => put(tensor, floats, |value| value),
        (Input::Floats(floats), Element::F16) => put(tensor, floats, f16::from_f32),
        (Input::Floats(floats), Element::Bf16) => put(tensor, floats, bf16::from_f32),
        (Input::Floats(floats), Element::I64) => put(tensor, floats, |value| value as i64),
        (Input::Floats(floats), Element::I32) => put(tensor, floats, |value| value as i32),
        (Input::Integers(ids), Element::I64) => put(tensor, ids, |id| id),
        (Input::Integers(ids), Element::I32) => put(tensor, ids, |id| id as i32),
        (Input::Integers(ids), Element::F32) => put(tensor, ids, |id| id as f32),
        (Input::Integers(ids), Element::F16) => put(tensor, ids, |id| f16::from_f32(id as f32)),
        (Input::Integers(ids), Element::Bf16) => put(tensor, ids, |id| bf16::from_f32(id as f32)),
        (_, Element::Other(name)) => Err(unsupported(name)),
    }
}

fn put<A: Copy, T: PrimitiveTensorElementType>(
    tensor: &mut DynTensor,
    values: &ArrayViewD<'_, A>,
    convert: impl Fn(A) -> T,
) -> ort::Result<()> {
    let mut target = tensor.try_extract_array_mut::<T>()?;
    if let (Some(given), Some(all)) = (values.shape().get(1), target.shape().get(1))
        && given < all
    {
        target.slice_axis_inplace(Axis(1), Slice::from(..*given));
    }
    let Some(values) = values.broadcast(target.raw_dim()) else {
        let (given, wanted) = (values.shape(), target.shape());
        return Err(ort::Error::new(format!("values of shape {given:?} for {wanted:?}")));
    };
    Zip::from(&mut target).and(&values).for_each(|to, from| *to = convert(*from));
    Ok(())
}

pub fn onnx_type(element: &Element) -> ort::Result<TensorElementType> {
    Ok(match element {
        Element::F32 => TensorElementType::Float32,
        Element::F16 => TensorElementType::Float16,
        Element::Bf16 => TensorElementType::Bfloat16,
        Element::I64 => TensorElementType::Int64,
        Element::I32 => TensorElementType::Int32,
        Element::Other(name) => return Err(unsupported(name)),
    })
}

fn unsupported(name: &str) -> ort::Error {
    ort::Error::new(format!("no pipeline supports inputs of type {name}"))
}
