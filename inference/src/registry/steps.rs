//! The steps of a load, and how each of them ends.

use std::fmt;
use std::time::Duration;

/// A step of a load, in order. Each can refuse the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// `tools.toml` binds existing models to tools that they can serve.
    Bindings,
    /// `model.toml` is valid.
    Manifest,
    /// The model fits into the memory of all models.
    Memory,
    /// The files have the sizes and SHA-256 checksums of the manifest.
    Checksum,
    /// The graph keeps its tensors only in files that the manifest lists.
    Files,
    /// Inputs and outputs have the names, types, ranks and sizes of the manifest. Taken after [`Self::Open`] for models
    /// that are not picture nets.
    Contract,
    /// ONNX Runtime opens the model on the device.
    Open,
    /// A net that is to compute in 16 bits does so, if that gives nearly the same outputs.
    Precision,
    /// A net takes several inputs at a time, if that gives the same outputs; a graph that fixes its batch at 1 is opened
    /// for that. Taken only where inputs run together.
    Batch,
    /// One run gives finite, plausible values.
    WarmUp,
    /// Where the operators run: the CPU runs those that the GPU cannot, with copies there and back. Only `models check`
    /// takes this step.
    Placement,
    /// Golden images come out as expected.
    Golden,
    /// Tiles equal the whole picture, if the manifest says that they do. Only `models check` takes this step: its
    /// shapes would occupy GPU memory in addition to the shapes of jobs.
    Tiling,
}

impl LoadStep {
    /// Returns the step's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bindings => "bindings",
            Self::Manifest => "manifest",
            Self::Memory => "memory",
            Self::Checksum => "checksum",
            Self::Files => "files",
            Self::Open => "open",
            Self::Contract => "contract",
            Self::Precision => "precision",
            Self::Batch => "batch",
            Self::WarmUp => "warm-up",
            Self::Placement => "placement",
            Self::Golden => "golden",
            Self::Tiling => "tiling",
        }
    }

    /// Returns true if unchanged files may pass the step later: it needs memory, the disk or the device.
    pub(crate) const fn may_pass_later(self) -> bool {
        match self {
            Self::Memory
            | Self::Checksum
            | Self::Open
            | Self::Precision
            | Self::Batch
            | Self::WarmUp
            | Self::Golden => true,
            Self::Bindings
            | Self::Manifest
            | Self::Files
            | Self::Contract
            | Self::Placement
            | Self::Tiling => false,
        }
    }

    /// Returns true if the step computes on the device or allocates there, so that it may fail because the device is lost.
    pub(crate) const fn uses_device(self) -> bool {
        match self {
            Self::Open
            | Self::Precision
            | Self::Batch
            | Self::WarmUp
            | Self::Placement
            | Self::Golden
            | Self::Tiling => true,
            Self::Bindings
            | Self::Manifest
            | Self::Memory
            | Self::Checksum
            | Self::Files
            | Self::Contract => false,
        }
    }
}

impl fmt::Display for LoadStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which steps a load takes, and whether it continues after a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Stops at the first reason to refuse the model, and skips golden images marked `when = "check"` and tiling. For
    /// serving.
    FailFast,
    /// Takes every step and continues after a failed one as far as possible. For maintainers.
    Thorough,
    /// Like [`Self::Thorough`], but stops before the first run: on this device the model would take minutes.
    WithoutRuns,
}

pub struct Outcome<T> {
    /// The finding of the step, in a few words; reported only without `reasons`.
    pub finding: String,
    /// Why the model is refused, one sentence each.
    pub reasons: Vec<String>,
    /// The input of the next steps; `None` if they cannot be taken.
    pub value: Option<T>,
}

impl<T> Outcome<T> {
    pub fn passed(finding: String, value: T) -> Self {
        Self { finding, reasons: Vec::new(), value: Some(value) }
    }

    /// The step failed for one reason, and the next steps cannot be taken.
    pub fn refused(reason: String) -> Self {
        Self::refused_for(vec![reason])
    }

    /// The step failed for several reasons, and the next steps cannot be taken.
    pub fn refused_for(reasons: Vec<String>) -> Self {
        Self { finding: String::new(), reasons, value: None }
    }
}

/// A report about a finished step. A step with several reasons to refuse the model is reported once per reason.
#[derive(Clone, Debug)]
pub struct StepReport {
    pub step: LoadStep,
    pub took: Duration,
    /// The finding of the step, in a few words, or why the model is refused, in one sentence.
    pub outcome: Result<String, String>,
}

#[derive(Clone, Debug)]
pub struct Refusal {
    pub step: LoadStep,
    /// One sentence.
    pub reason: String,
}
