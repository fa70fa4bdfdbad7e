//! Nets that take pictures: their graphs convert bytes, as [`crate::onnx::pictures`] says.

use std::{fs, io};

use ndarray::{Array4, ArrayView4, Axis, concatenate};
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
    /// Whether it takes one input at a time, whatever its graph says.
    runs_alone: bool,
    own: NetSession,
    /// Another session for batches, where one that gets inputs of another shape would have to prepare for it.
    batches: Option<NetSession>,
}

/// A session and its tensors.
struct NetSession {
    reader: OutputReader,
    /// Tensors kept between runs; `None` if the session does not keep any.
    bindings: Option<ShapeBindings>,
    inner: OpenSession,
}

impl PictureNet {
    /// Creates a net with one session, or with another one for batches.
    pub(super) fn new(
        (inner, bindings): (OrtSession, Option<ShapeBindings>),
        batches: Option<(OrtSession, Option<ShapeBindings>)>,
        tensors: &Tensors<'_>,
    ) -> Self {
        let reader = OutputReader { returns: tensors.returns, white: tensors.white };
        let session =
            |inner: OrtSession, bindings| NetSession { reader, bindings, inner: inner.into() };
        let batches = batches.map(|(inner, bindings)| session(inner, bindings));
        Self { runs_alone: false, own: session(inner, bindings), batches }
    }

    /// Returns whether one run can take a batch: the first axis of the input has an open size, and nobody has found out
    /// that a batch is wrong.
    pub fn takes_batches(&self) -> bool {
        let is_open = |input| port(input).shape.first() == Some(&None);
        !self.runs_alone && self.own.inner.inputs().iter().any(is_open)
    }

    /// Disables batches from now on, because a batch gives other outputs than single runs.
    pub fn run_alone(&mut self) {
        self.runs_alone = true;
        self.batches = None;
    }

    /// Returns whether batches have a session of their own.
    pub const fn separates_batches(&self) -> bool {
        self.batches.is_some()
    }

    /// Returns the number of shapes whose tensors are kept, at most 8 for each session.
    pub fn kept_shapes(&self) -> usize {
        let sessions = [Some(&self.own), self.batches.as_ref()].into_iter().flatten();
        sessions.filter_map(|session| session.bindings.as_ref()).map(ShapeBindings::len).sum()
    }

    const fn session_for(&mut self, batch: usize) -> &mut NetSession {
        match &mut self.batches {
            Some(batches) if batch > 1 => batches,
            _ => &mut self.own,
        }
    }

    /// Runs the net on pictures, bytes `[batch, row, column, 3]`: R, G and B.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails.
    pub fn run(&mut self, pictures: &Array4<u8>) -> Result<Output, SessionError> {
        self.session_for(pictures.len_of(Axis(0))).run(&pictures.view())
    }

    /// Runs the net on a batch of `size` that consists of pictures, bytes `[1, row, column, 3]` of one shape, with the last one
    /// repeated to fill it. Returns the output of each picture, as a batch of one.
    ///
    /// # Errors
    /// Same as [`Self::run`].
    pub fn run_each(
        &mut self,
        pictures: &[ArrayView4<'_, u8>],
        size: usize,
    ) -> Result<Vec<Output>, SessionError> {
        self.session_for(size).run_each(pictures, size)
    }

    /// Runs the net on pictures as [`Self::run`] does, and returns where its operators ran.
    ///
    /// # Errors
    /// ONNX Runtime's message if it refuses the input or fails, or why its profile cannot be read.
    pub fn placement(&mut self, pictures: &Array4<u8>) -> Result<Placement, SessionError> {
        self.session_for(pictures.len_of(Axis(0))).placement(pictures)
    }
}

impl NetSession {
    fn run(&mut self, pictures: &ArrayView4<'_, u8>) -> Result<Output, SessionError> {
        if let Some(output) = self.run_bound((pictures.dim().into(), &[*pictures]))? {
            return Ok(output);
        }
        let device = device::share();
        let output = self.run_unbound(pictures).map_err(|error| classify(&error))?;
        drop(device);
        // Values that are not finite differ from themselves.
        if let Some(bindings) = self.bindings.as_mut().filter(|_| output.is_finite())
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

    fn run_each(
        &mut self,
        pictures: &[ArrayView4<'_, u8>],
        size: usize,
    ) -> Result<Vec<Output>, SessionError> {
        let failed = |reason: String| SessionError::Failed(format!("batch: {reason}"));
        let Some(last) = pictures.last() else { return Ok(Vec::new()) };
        if size == 1 {
            return Ok(vec![self.run(last)?]);
        }
        let (_, rows, columns, channels) = last.dim();
        let bound = self.run_bound(([size, rows, columns, channels], pictures))?;
        let output = if let Some(output) = bound {
            output
        } else {
            let repeated = std::iter::repeat_n(*last, size.saturating_sub(pictures.len()));
            let views: Vec<_> = pictures.iter().copied().chain(repeated).collect();
            let batch = concatenate(Axis(0), &views).map_err(|error| failed(error.to_string()))?;
            self.run(&batch.view())?
        };
        let mut outputs = output.split();
        outputs.truncate(pictures.len());
        if outputs.len() != pictures.len() {
            return Err(failed(format!(
                "{} inputs gave {} outputs",
                pictures.len(),
                outputs.len()
            )));
        }
        Ok(outputs)
    }

    fn run_bound(
        &mut self,
        batch: ([usize; 4], &[ArrayView4<'_, u8>]),
    ) -> Result<Option<Output>, SessionError> {
        let Some(bindings) = &mut self.bindings else { return Ok(None) };
        let _device = device::share();
        bindings.run(&mut self.inner, batch).map_err(|error| classify(&error))
    }

    fn placement(&mut self, pictures: &Array4<u8>) -> Result<Placement, SessionError> {
        let failed = |error: io::Error| SessionError::Failed(format!("the profile: {error}"));
        let folder = TempDir::new().map_err(failed)?;
        let _device = device::share();
        if let Some(bindings) = &mut self.bindings {
            bindings.prepare_unbound();
        }
        let mut run = || -> ort::Result<()> {
            let mut options = self.unbound_options()?;
            options.enable_profiling(folder.path().join("run"))?;
            self.run_with(&pictures.view(), &options).map(drop)
        };
        run().map_err(|error| classify(&error))?;
        let mut files = fs::read_dir(folder.path()).map_err(failed)?;
        let profile = files.next().transpose().map_err(failed)?;
        let profile = profile
            .map_or_else(|| Err(io::ErrorKind::NotFound.into()), |file| fs::read(file.path()));
        Placement::read(&profile.map_err(failed)?).map_err(SessionError::Failed)
    }

    fn run_unbound(&mut self, pictures: &ArrayView4<'_, u8>) -> ort::Result<Output> {
        let options = self.unbound_options()?;
        self.run_with(pictures, &options)
    }

    fn unbound_options(&self) -> ort::Result<RunOptions> {
        self.bindings.as_ref().map_or_else(RunOptions::new, ShapeBindings::unbound_options)
    }

    fn run_with(
        &mut self,
        pictures: &ArrayView4<'_, u8>,
        options: &RunOptions,
    ) -> ort::Result<Output> {
        let input = TensorRef::from_array_view(*pictures)?;
        let outputs = self.inner.run_with_options(ort::inputs![PICTURE => input], options)?;
        let outputs: Vec<_> = self.reader.names().iter().map(|name| &outputs[*name]).collect();
        self.reader.read(&outputs)
    }
}
