//! The host memory of picture nets that stays allocated between runs, and ONNX Runtime's I/O bindings to it.
//! [`super::bound_runs`] does the same for nets with several inputs.
//!
//! By default, ONNX Runtime allocates the output of every run anew, and copies to and from ordinary memory, more slowly than
//! the bus allows. Here each shape has its input and output in page-locked memory, allocated once. On an H200, a batch of
//! isnet takes 39 ms with it and 59 ms without. To be recorded as a CUDA graph, a run also needs its tensors at fixed
//! addresses on the device.
//!
//! Outputs are lent: callers read them where the device wrote them, while the next run writes elsewhere. Where a net may
//! record CUDA graphs, they are copied.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use ndarray::{ArrayView4, ArrayViewMut4, Axis, Ix4, Slice};
use ort::session::{IoBinding, RunOptions, Session as OrtSession};
use ort::value::{
    DynTensor, DynTensorValueType, PrimitiveTensorElementType, TensorElementType, TensorRefMut,
    ValueRefMut,
};
use tracing::debug;

use super::device;
use super::kept::{
    HostTensor, Keeping, KeptShapes, MAX_SHAPES, check_same_output, on_device, on_host, page_locked,
};
use super::output_reader::OutputReader;
use crate::device::Device;
use crate::onnx::pictures::{EXTREMES, PICTURE, RESULT};
use crate::output::Output;

/// Outputs of one shape in page-locked memory: one that the device writes, and others that callers still read.
const MAX_RESULTS: usize = 3;

/// The kept tensors of a net, by shape.
pub struct ShapeBindings {
    device: Device,
    /// Whether callers read outputs where the net writes them.
    lends: bool,
    kept: KeptShapes<ShapeBinding>,
    /// Recent shapes without kept tensors, the newest last.
    seen: VecDeque<[usize; 4]>,
    /// Whether a bound run gave the output of an unbound one.
    is_proven: bool,
}

/// The kept tensors of one shape.
struct ShapeBinding {
    shape: [usize; 4],
    reader: OutputReader,
    binding: IoBinding,
    options: RunOptions,
    input: Kept,
    results: Results,
    /// The second output, of nets that return pictures.
    extremes: Option<Kept>,
}

struct Kept {
    /// Where a recorded graph expects it. `None` if ONNX Runtime chooses the place in every run.
    on_device: Option<DynTensor>,
    on_host: DynTensor,
}

/// The memory for the first output.
struct Results {
    device: Device,
    element: TensorElementType,
    shape: Vec<usize>,
    /// Where a recorded graph expects it.
    on_device: Option<DynTensor>,
    /// At most [`MAX_RESULTS`]; those that callers read have other owners.
    on_host: Vec<Arc<HostTensor>>,
}

impl ShapeBindings {
    /// Creates the empty bindings of a net on `device`; `None` if its session keeps nothing. On a CPU both sides are
    /// host memory: the same steps run, without gain. With `lends`, callers read outputs where the net writes them, and may
    /// free that memory at any time; no net of the process may then record CUDA graphs.
    pub fn new(device: Device, keeping: Keeping, lends: bool) -> Option<Self> {
        Some(Self {
            device,
            lends,
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

    /// Runs on the tensors kept for a batch of this shape; `None` if there are none. The batch consists of `pictures`, with the
    /// last one repeated to fill it.
    ///
    /// # Errors
    /// If the device fails. All kept tensors are then released, which leaves more memory for a retry.
    pub fn run(
        &mut self,
        session: &mut OrtSession,
        (shape, pictures): ([usize; 4], &[ArrayView4<'_, u8>]),
    ) -> ort::Result<Option<Output>> {
        let Some(binding) = self.kept.find(|binding| binding.shape == shape) else {
            self.prepare_unbound();
            return Ok(None);
        };
        let output = binding.run(session, pictures, self.lends);
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
            check_same_output(output, &binding.run(session, &[*input], false)?)?;
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
        let input = keep(BYTES, shape.to_vec())?;
        if let Some(fixed) = &input.on_device {
            binding.bind_input(PICTURE, fixed)?;
        }
        let (element, result_shape, pictures) = match output {
            Output::Maps(maps) => (FLOATS, maps.shape().to_vec(), None),
            Output::Pictures { samples, extremes } => {
                (BYTES, samples.shape().to_vec(), Some(extremes.len()))
            }
        };
        let fixed = is_recorded.then(|| on_device(session, device, element, result_shape.clone()));
        let mut results = Results {
            device,
            element,
            shape: result_shape,
            on_device: fixed.transpose()?,
            on_host: Vec::new(),
        };
        if let Some(fixed) = &mut results.on_device {
            binding.bind_output(RESULT, fixed)?;
        }
        let mut extremes = pictures.map(|count| keep(FLOATS, vec![count, 3, 1, 1])).transpose()?;
        if let Some(kept) = &mut extremes {
            match &mut kept.on_device {
                Some(fixed) => binding.bind_output(EXTREMES, fixed)?,
                None => binding.bind_output(EXTREMES, plain_mut(&mut kept.on_host)?)?,
            }
        }
        Ok(Self { shape, reader, binding, options, input, results, extremes })
    }

    fn run(
        &mut self,
        session: &mut OrtSession,
        pictures: &[ArrayView4<'_, u8>],
        lends: bool,
    ) -> ort::Result<Output> {
        let batch = self.input.on_host.try_extract_array_mut::<u8>()?;
        let batch = batch.into_dimensionality::<Ix4>();
        fill(&mut batch.map_err(|error| ort::Error::new(error.to_string()))?, pictures);
        match &mut self.input.on_device {
            Some(fixed) => self.input.on_host.copy_into(fixed)?,
            // This copies it to the device.
            None => self.binding.bind_input(PICTURE, &self.input.on_host)?,
        }
        let mut result = self.results.free(session)?;
        if self.results.on_device.is_none() {
            self.binding.bind_output(RESULT, plain_mut(&mut result)?)?;
        }
        // The returned values alias the bound outputs.
        drop(session.run_binding_with_options(&self.binding, &self.options)?);
        if let Some(fixed) = &self.results.on_device {
            fixed.copy_into(plain_mut(&mut result)?)?;
        }
        if let Some(extremes) = &mut self.extremes {
            extremes.fetch()?;
        }
        let extremes = self.extremes.as_ref().map(|extremes| &extremes.on_host);
        let result = self.results.keep(result);
        if lends {
            return self.reader.lend(result, extremes);
        }
        let outputs: Vec<_> = [&result.0].into_iter().chain(extremes).collect();
        self.reader.read(&outputs)
    }
}

impl Results {
    /// Returns memory that nobody reads.
    fn free(&mut self, session: &OrtSession) -> ort::Result<DynTensor> {
        let is_free = |result: &Arc<HostTensor>| Arc::strong_count(result) == 1;
        let free = self.on_host.iter().position(is_free);
        if let Some(HostTensor(free)) =
            free.and_then(|at| Arc::into_inner(self.on_host.swap_remove(at)))
        {
            return Ok(free);
        }
        let shape = self.shape.clone();
        if self.on_host.len() == MAX_RESULTS {
            return on_host(self.element, shape);
        }
        // The system may limit page-locked memory. That says nothing about the device's.
        page_locked(session, self.device, self.element, shape.clone()).or_else(|error| {
            debug!(%error, "Keeping an output in memory that is not page-locked");
            on_host(self.element, shape)
        })
    }

    /// Returns a result to lend, and keeps its memory for a later run.
    fn keep(&mut self, result: DynTensor) -> Arc<HostTensor> {
        let result = Arc::new(HostTensor(result));
        if self.on_host.len() < MAX_RESULTS {
            self.on_host.push(result.clone());
        }
        result
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
