//! Nets that take pictures: their graphs convert bytes, as [`crate::onnx::pictures`] says.

use std::{fs, io};

use ndarray::Array4;
use ort::session::{RunOptions, Session as OrtSession};
use ort::value::TensorRef;
use tempfile::TempDir;
use tracing::warn;

use super::device::{self, OpenSession};
use super::error::{SessionError, classify};
use super::io_binding::ShapeBindings;
use super::output_reader::OutputReader;
use super::placement::Placement;
use super::port;
use crate::onnx::pictures::PICTURE;
use crate::output::Output;
use crate::tensor::Tensors;

/// A net with one input, a picture, and one output.
pub struct PictureNet {
    reader: OutputReader,
    /// Whether it takes one input at a time, whatever its graph says.
    runs_alone: bool,
    /// Tensors kept on the device; `None` if the session does not keep any.
    bindings: Option<ShapeBindings>,
    inner: OpenSession,
}

impl PictureNet {
    pub(super) fn new(
        inner: OrtSession,
        tensors: &Tensors<'_>,
        bindings: Option<ShapeBindings>,
    ) -> Self {
        let reader = OutputReader { returns: tensors.returns, white: tensors.white };
        Self { reader, runs_alone: false, bindings, inner: inner.into() }
    }

    /// Returns whether one run can take a batch: the first axis of the input has an open size, and nobody has found out
    /// that a batch is wrong.
    pub fn takes_batches(&self) -> bool {
        let is_open = |input| port(input).shape.first() == Some(&None);
        !self.runs_alone && self.inner.inputs().iter().any(is_open)
    }

    /// Disables batches from now on, because a batch gives other outputs than single runs.
    pub const fn run_alone(&mut self) {
        self.runs_alone = true;
    }

    /// Returns the number of shapes whose tensors are kept on the device, at most 8.
    pub fn kept_shapes(&self) -> usize {
        self.bindings.as_ref().map_or(0, ShapeBindings::len)
    }

    /// Runs the net on pictures, bytes `[batch, row, column, 3]`: R, G and B.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails.
    pub fn run(&mut self, pictures: &Array4<u8>) -> Result<Output, SessionError> {
        let device = device::share();
        let run = match &mut self.bindings {
            Some(bindings) => bindings.run(&mut self.inner, self.reader, pictures),
            None => Ok(None),
        };
        if let Some(output) = run.map_err(|error| classify(&error))? {
            return Ok(output);
        }
        let output = self.run_unbound(pictures).map_err(|error| classify(&error))?;
        drop(device);
        if let Some(bindings) = &mut self.bindings
            && let Err(error) = bindings.keep(&mut self.inner, self.reader, pictures, &output)
        {
            let shared = device::share();
            bindings.turn_off();
            drop(shared);
            match classify(&error) {
                lost @ SessionError::DeviceLost(_) => return Err(lost),
                error => warn!(%error, "Running a model without tensors kept on the device"),
            }
        }
        Ok(output)
    }

    /// Runs the net on pictures as [`Self::run`] does, and returns where its operators ran.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails, or why its profile cannot be read.
    pub fn placement(&mut self, pictures: &Array4<u8>) -> Result<Placement, SessionError> {
        let failed = |error: io::Error| SessionError::Failed(format!("the profile: {error}"));
        let folder = TempDir::new().map_err(failed)?;
        let _device = device::share();
        if let Some(bindings) = &mut self.bindings {
            bindings.prepare_unbound();
        }
        let mut run = || -> ort::Result<()> {
            let mut options = self.unbound_options()?;
            options.enable_profiling(folder.path().join("run"))?;
            self.run_with(pictures, &options).map(drop)
        };
        run().map_err(|error| classify(&error))?;
        let mut files = fs::read_dir(folder.path()).map_err(failed)?;
        let profile = files.next().transpose().map_err(failed)?;
        let profile = profile
            .map_or_else(|| Err(io::ErrorKind::NotFound.into()), |file| fs::read(file.path()));
        Placement::read(&profile.map_err(failed)?).map_err(SessionError::Failed)
    }

    fn run_unbound(&mut self, pictures: &Array4<u8>) -> ort::Result<Output> {
        let options = self.unbound_options()?;
        self.run_with(pictures, &options)
    }

    fn unbound_options(&self) -> ort::Result<RunOptions> {
        self.bindings.as_ref().map_or_else(RunOptions::new, ShapeBindings::unbound_options)
    }

    fn run_with(&mut self, pictures: &Array4<u8>, options: &RunOptions) -> ort::Result<Output> {
        let input = TensorRef::from_array_view(pictures.view())?;
        let outputs = self.inner.run_with_options(ort::inputs![PICTURE => input], options)?;
        let outputs: Vec<_> = self.reader.names().iter().map(|name| &outputs[*name]).collect();
        self.reader.read(&outputs)
    }
}
