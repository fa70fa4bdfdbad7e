//! The host memory of picture nets that stays allocated between runs, and ONNX Runtime's I/O bindings to it.
//! [`super::bound_runs`] does the same for nets with several inputs.
//!
//! By default, ONNX Runtime allocates the output of every run anew, and copies to and from ordinary memory, more slowly than
//! the bus allows. Here each shape has its input and output in page-locked memory, allocated once. On an H200, a batch of
//! isnet takes 39 ms with it and 59 ms without. To be recorded as a CUDA graph, a run also needs its tensors at fixed
//! addresses on the device.

use std::collections::VecDeque;
use std::fmt::Debug;

use ndarray::{ArrayView4, ArrayViewMut4, Axis, Ix4, Slice};
use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::{
    DynTensor, DynTensorValueType, PrimitiveTensorElementType, TensorElementType, TensorRefMut,
    ValueRefMut,
};

use super::device;
use super::kept::{Keeping, KeptShapes, MAX_SHAPES, check_same_output, on_device, page_locked};
use super::output_reader::OutputReader;
use crate::device::Device;
use crate::onnx::pictures::PICTURE;
use crate::output::Output;

/// The kept tensors of a net, by shape.
pub struct ShapeBindings {
    device: Device,
    kept: KeptShapes<ShapeBinding>,
    /// Recent shapes without kept tensors, the newest last.
    seen: VecDeque<[usize; 4]>,
    /// Whether a bound run gave the output of an unbound one.
    is_proven: bool,
}

/// The kept tensors of one shape.
struct ShapeBinding {
    shape: [usize; 4],
    binding: IoBinding,
    options: RunOptions,
    input: Kept,
    /// In the order of [`OutputReader::names`].
    outputs: Vec<Kept>,
}

struct Kept {
    /// Where a recorded graph expects it. `None` if ONNX Runtime chooses the place in every run.
    on_device: Option<DynTensor>,
    on_host: DynTensor,
}

impl ShapeBindings {
    /// Creates the empty bindings of a net on `device`; `None` if its session keeps nothing. On a CPU both sides are
    /// host memory: the same steps run, without gain.
    pub fn new(device: Device, keeping: Keeping) -> Option<Self> {
        Some(Self {
            device,
            kept: KeptShapes::new(keeping)?,
            seen: VecDeque::new(),
            is_proven: false,
        })
    }

    /// Returns the number of shapes with kept tensors.
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn unbound_options(&self) -> ort::Result<RunOptions> {
        self.kept.unbound_options()
    }

    /// Runs on the tensors kept for a batch of this shape, and reads the outputs with `read`; `None` if there are none. The
    /// batch consists of `pictures`, with the last one repeated to fill it.
    ///
    /// # Errors
    /// If the device fails. All kept tensors are then released, which leaves more memory for a retry.
    pub fn run<T>(
        &mut self,
        session: &mut OrtSession,
        (shape, pictures): ([usize; 4], &[ArrayView4<'_, u8>]),
        read: impl FnOnce(&[&DynTensor]) -> ort::Result<T>,
    ) -> ort::Result<Option<T>> {
        let Some(binding) = self.kept.find(|binding| binding.shape == shape) else {
            self.prepare_unbound();
            return Ok(None);
        };
        let output = binding.run(session, pictures, read);
        if output.is_err() {
            self.kept.clear();
        }
        output.map(Some)
    }

    /// Prepares for a run that is not bound.
    pub fn prepare_unbound(&mut self) {
        self.kept.prepare_unbound();
    }

    /// Keeps nothing from now on.
    pub fn turn_off(&mut self) {
        self.kept.turn_off();
    }

    /// Allocates kept tensors for the shape of an input that just ran unbound, if the shape has occurred before. Checks that
    /// a bound run gives the same output: for the first shape, and for every graph.
    ///
    /// # Errors
    /// If the outputs differ, or the device fails. The caller then continues without kept tensors.
    pub fn keep(
        &mut self,
        session: &mut OrtSession,
        reader: OutputReader,
        input: &ArrayView4<'_, u8>,
        output: &Output,
    ) -> ort::Result<()> {
        let shape = input.dim().into();
        if !self.is_repeated(shape) {
            return Ok(());
        }
        let records = self.kept.records();
        // While a model loads, nothing is recorded; a later run of this shape tries again.
        let Some(_device) = device::claim(records) else { return Ok(()) };
        self.seen.retain(|seen| *seen != shape);
        let make = |options| {
            ShapeBinding::new(session, self.device, reader, (shape, output), options, records)
        };
        let Some(binding) = self.kept.add(make)? else { return Ok(()) };
        // The first run of a graph records it, and the second one replays it.
        let runs = if records { 2 } else { usize::from(!self.is_proven) };
        for _ in 0..runs {
            let bound = binding.run(session, &[*input], |outputs| reader.read(outputs))?;
            check_same_output(output, &bound)?;
        }
        self.is_proven = true;
        Ok(())
    }

    /// Returns whether a shape is among the recent ones, and adds it to them.
    fn is_repeated(&mut self, shape: [usize; 4]) -> bool {
        let is_known = self.seen.contains(&shape);
        if !is_known {
            self.seen.push_back(shape);
            if self.seen.len() > MAX_SHAPES {
                self.seen.pop_front();
            }
        }
        is_known
    }
}

impl ShapeBinding {
    fn new(
        session: &OrtSession,
        device: Device,
        reader: OutputReader,
        (shape, output): ([usize; 4], &Output),
        options: RunOptions,
        is_recorded: bool,
    ) -> ort::Result<Self> {
        const BYTES: TensorElementType = TensorElementType::Uint8;
        const FLOATS: TensorElementType = TensorElementType::Float32;
        let keep = |element, shape: Vec<usize>| -> ort::Result<Kept> {
            let fixed = is_recorded.then(|| on_device(session, device, element, shape.clone()));
            let on_host = page_locked(session, device, element, shape)?;
            Ok(Kept { on_device: fixed.transpose()?, on_host })
        };
        let mut binding = session.create_binding()?;
        let kept_input = keep(BYTES, shape.to_vec())?;
        if let Some(fixed) = &kept_input.on_device {
            binding.bind_input(PICTURE, fixed)?;
        }
        let made = match output {
            Output::Maps(maps) => vec![(FLOATS, maps.shape().to_vec())],
            Output::Pictures { samples, extremes } => {
                vec![(BYTES, samples.shape().to_vec()), (FLOATS, vec![extremes.len(), 3, 1, 1])]
            }
        };
        let mut outputs = Vec::new();
        for (name, (element, shape)) in reader.names().iter().zip(made) {
            let mut kept = keep(element, shape)?;
            match &mut kept.on_device {
                Some(fixed) => binding.bind_output(*name, fixed)?,
                None => binding.bind_output(*name, plain_mut(&mut kept.on_host)?)?,
            }
            outputs.push(kept);
        }
        Ok(Self { shape, binding, options, input: kept_input, outputs })
    }

    fn run<T>(
        &mut self,
        session: &mut OrtSession,
        pictures: &[ArrayView4<'_, u8>],
        read: impl FnOnce(&[&DynTensor]) -> ort::Result<T>,
    ) -> ort::Result<T> {
        let batch = self.input.on_host.try_extract_array_mut::<u8>()?;
        let batch = batch.into_dimensionality::<Ix4>();
        fill(&mut batch.map_err(|error| ort::Error::new(error.to_string()))?, pictures);
        match &mut self.input.on_device {
            Some(fixed) => self.input.on_host.copy_into(fixed)?,
            // This copies it to the device.
            None => self.binding.bind_input(PICTURE, &self.input.on_host)?,
        }
        // The returned values alias the bound outputs.
        drop(session.run_binding_with_options(&self.binding, &self.options)?);
        for output in &mut self.outputs {
            output.fetch()?;
        }
        let outputs: Vec<_> = self.outputs.iter().map(|output| &output.on_host).collect();
        read(&outputs)
    }
}

/// Writes pictures into a batch, and the last one into the rest.
fn fill(batch: &mut ArrayViewMut4<'_, u8>, pictures: &[ArrayView4<'_, u8>]) {
    let mut row = 0;
    for picture in pictures.iter().chain(pictures.last().into_iter().cycle()) {
        let next = row + picture.len_of(Axis(0));
        if next > batch.len_of(Axis(0)) {
            return;
        }
        batch.slice_axis_mut(Axis(0), Slice::from(row..next)).assign(picture);
        row = next;
    }
}

impl Kept {
    /// Copies an output to the host, unless it is there.
    fn fetch(&mut self) -> ort::Result<()> {
        let Some(fixed) = &self.on_device else { return Ok(()) };
        fixed.copy_into(plain_mut(&mut self.on_host)?)
    }
}

/// Returns page-locked memory as ordinary host memory. ONNX Runtime 1.31 takes page-locked memory for the device's own, and
/// fails to copy an output that it wrote there itself.
fn plain_mut(tensor: &mut DynTensor) -> ort::Result<ValueRefMut<'_, DynTensorValueType>> {
    fn of<T: PrimitiveTensorElementType + Clone + Debug + 'static>(
        tensor: &mut DynTensor,
    ) -> ort::Result<ValueRefMut<'_, DynTensorValueType>> {
        let shape = tensor.shape().to_vec();
        let (_, values) = tensor.try_extract_tensor_mut::<T>()?;
        TensorRefMut::from_array_view_mut((shape, values))?.into_dyn().downcast()
    }
    match *tensor.data_type() {
        TensorElementType::Uint8 => of::<u8>(tensor),
        _ => of::<f32>(tensor),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    #[test]
    fn the_last_picture_fills_the_rest_of_a_batch() {
        let picture = |value| Array4::from_elem((1, 2, 2, 3), value);
        let (one, two) = (picture(1), picture(2));
        let filled = |pictures: &[ArrayView4<'_, u8>]| {
            let mut batch = Array4::zeros((4, 2, 2, 3));
            fill(&mut batch.view_mut(), pictures);
            batch.axis_iter(Axis(0)).map(|picture| picture[[0, 0, 0]]).collect::<Vec<_>>()
        };
        assert_eq!(filled(&[one.view(), two.view()]), [1, 2, 2, 2]);
        let whole = Array4::from_shape_fn((4, 2, 2, 3), |(at, ..)| at as u8);
        assert_eq!(filled(&[whole.view()]), [0, 1, 2, 3]);
    }
}
