//! The steps of a load, each of which can refuse a model with a reason.

use std::fmt;
use std::time::{Duration, Instant};

use retouch_catalog::FixMode;

use retouch_pixels::patch::Canvas;

use super::files;
use crate::manifest::{
    Exemplar, Fill, Golden, GoldenWhen, Inpaint, Manifest, NetTask, Safety, Task, TilingMode,
};
use crate::painter::{ExemplarPainter, FillPainter, InpaintPainter, Painter};
use crate::safety::SafetyChecker;
use crate::session::{ExtraFile, Runtime, Session, SessionError};

mod net;
mod painter;

pub use painter::sample_painting;

/// A step on the way to serving, in the order they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// `tools.toml` binds what exists to what it can do.
    Bindings,
    /// `model.toml` can be read.
    Manifest,
    /// The files have the sizes and SHA-256 that the manifest states.
    Checksum,
    /// The graph keeps its tensors in these files and in no other.
    Files,
    /// ONNX Runtime opens it on the device.
    Open,
    /// Its inputs and outputs are the manifest's, by name, type, rank and size.
    Contract,
    /// One run gives finite values in a sane range.
    WarmUp,
    /// Known pictures come out right.
    Golden,
    /// Tiles are what they would be in the whole picture, where the manifest says that they are exact. Only
    /// `models check` takes it: its shapes would stay on a GPU beside those of jobs.
    Tiling,
}

impl LoadStep {
    /// The step's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bindings => "bindings",
            Self::Manifest => "manifest",
            Self::Checksum => "checksum",
            Self::Files => "files",
            Self::Open => "open",
            Self::Contract => "contract",
            Self::WarmUp => "warm-up",
            Self::Golden => "golden",
            Self::Tiling => "tiling",
        }
    }
}

impl fmt::Display for LoadStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a load goes when something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To the first reason: enough for not serving a model.
    StopAtFirst,
    /// As far as anything can still be judged, with every golden picture and with tiles: for whoever has to mend it.
    EveryReason,
    /// The same, but nothing is run: for a model that would take minutes on this device.
    WithoutRuns,
}

/// What came of one step.
pub struct Outcome<T> {
    /// What was found, in a few words, if nothing is wrong.
    pub finding: String,
    /// What is wrong, each in one sentence.
    pub reasons: Vec<String>,
    /// What the next steps need; missing when they cannot be judged.
    pub value: Option<T>,
}

impl<T> Outcome<T> {
    /// One reason, and nothing to go on with.
    pub fn refused(reason: String) -> Self {
        Self { finding: String::new(), reasons: vec![reason], value: None }
    }

    fn passed(finding: String, value: T) -> Self {
        Self { finding, reasons: Vec::new(), value: Some(value) }
    }
}

/// One finished step of a load; a step that finds several things wrong is told of as often.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// Which step.
    pub step: LoadStep,
    /// How long it took.
    pub took: Duration,
    /// What was found in a few words, or why the model is refused in one sentence.
    pub outcome: Result<String, String>,
}

/// Why a model is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The step that failed.
    pub step: LoadStep,
    /// Why, in one sentence.
    pub reason: String,
}

/// What a model's thread owns.
pub enum Engine {
    /// One net, run on one tensor.
    Net(Box<Session>),
    /// What paints crops.
    Painter(Box<dyn Painter>),
    /// What judges pictures.
    SafetyChecker(Box<SafetyChecker>),
}

/// What came of a load.
pub struct Loaded {
    /// The model, if it could be run as its manifest says; beside refusals it is good for nothing but
    /// measuring.
    pub engine: Option<Engine>,
    /// Everything that is wrong with it, as far as was asked.
    pub refusals: Vec<Refusal>,
}

/// Takes every step, telling `report` about each.
pub fn load(
    manifest: &Manifest,
    runtime: &Runtime,
    how: How,
    report: impl FnMut(StepReport),
) -> Loaded {
    let mut steps = Steps { how, report, refusals: Vec::new() };
    let engine = match &manifest.task {
        Task::Segmentation(contract) => {
            steps.load_net(manifest, NetTask::Segmentation(contract), runtime)
        }
        Task::Upscale(contract) => steps.load_net(manifest, NetTask::Upscale(contract), runtime),
        Task::Safety(contract) => steps.load_judge(manifest, contract, runtime),
        Task::Exemplar(contract) => steps.load_exemplar(contract),
        Task::Fill(contract) => steps.load_fill(manifest, contract, runtime),
        Task::SdInpaint(contract) | Task::Flux2Klein(contract) => {
            steps.load_pipeline(manifest, contract, runtime)
        }
    };
    Loaded { engine, refusals: steps.refusals }
}

struct Steps<R> {
    how: How,
    report: R,
    refusals: Vec<Refusal>,
}

impl<R: FnMut(StepReport)> Steps<R> {
    /// One ONNX file, from the bytes that were checked.
    fn open(
        &mut self,
        manifest: &Manifest,
        runtime: &Runtime,
        open: impl FnOnce(&Runtime, &[u8], &[ExtraFile]) -> Result<Session, SessionError>,
    ) -> Option<Session> {
        let how = self.how;
        let files = self.take(LoadStep::Checksum, || files::read(manifest, how))?;
        self.take(LoadStep::Files, || files::stay_inside(manifest, &files))?;
        self.take(LoadStep::Open, || match open(runtime, &files.model, &files.extra) {
            Ok(session) => Outcome::passed(format!("opened on {}", runtime.device()), session),
            Err(error) => Outcome::refused(error.to_string()),
        })
    }

    fn load_exemplar(&mut self, contract: &Exemplar) -> Option<Engine> {
        self.runs()?;
        let painter = Box::new(ExemplarPainter::new(contract));
        self.warm_up_painter(painter, contract.canvas, FixMode::Remove)
    }

    fn load_fill(
        &mut self,
        manifest: &Manifest,
        contract: &Fill,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let session = self.open(manifest, runtime, Runtime::open)?;
        let painter =
            self.take(LoadStep::Contract, || match FillPainter::new(session, contract) {
                Ok(painter) => {
                    Outcome::passed("a picture and a mask → a picture".to_owned(), painter)
                }
                Err(reasons) => Outcome { finding: String::new(), reasons, value: None },
            })?;
        self.runs()?;
        self.warm_up_painter(Box::new(painter), contract.canvas, FixMode::Remove)
    }

    fn load_judge(
        &mut self,
        manifest: &Manifest,
        contract: &Safety,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let session = self.open(manifest, runtime, Runtime::open)?;
        let mut judge =
            self.take(LoadStep::Contract, || match SafetyChecker::new(session, contract) {
                Ok(judge) => Outcome::passed("a picture → probabilities".to_owned(), judge),
                Err(reasons) => Outcome { finding: String::new(), reasons, value: None },
            })?;
        self.runs()?;
        self.take(LoadStep::WarmUp, || {
            let picture = net::disc_on_gradient();
            match judge.unsafety(&picture.rgb, picture.width, picture.height) {
                Ok(score) => Outcome::passed(format!("a disc is unsafe by {score:.3}"), ()),
                Err(error) => Outcome::refused(error.to_string()),
            }
        })?;
        Some(Engine::SafetyChecker(Box::new(judge)))
    }

    /// A folder of nets. What each takes and gives is judged while it is opened.
    fn load_pipeline(
        &mut self,
        manifest: &Manifest,
        contract: &Inpaint,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let how = self.how;
        self.take(LoadStep::Checksum, || files::compare(manifest, how))?;
        let painter = self.take(LoadStep::Open, || {
            let folder = &manifest.folder;
            let opened = match &manifest.task {
                Task::Flux2Klein(_) => InpaintPainter::flux2_klein(folder, contract, runtime),
                _ => InpaintPainter::sd_inpaint(folder, contract, runtime),
            };
            match opened {
                Ok(painter) => Outcome::passed(format!("opened on {}", runtime.device()), painter),
                Err(error) => Outcome::refused(error.to_string()),
            }
        })?;
        self.runs()?;
        let mode = contract.strength.keys().next().copied().unwrap_or(FixMode::Edit);
        let engine = self.warm_up_painter(Box::new(painter), contract.canvas, mode)?;
        if let Some(reference) = contract.reference.as_ref().filter(|_| how == How::EveryReason) {
            let reference = manifest.folder.join(reference);
            self.take(LoadStep::Golden, || {
                painter::compare_with(&manifest.folder, &reference, runtime)
            })?;
        }
        Some(engine)
    }

    fn warm_up_painter(
        &mut self,
        mut owned: Box<dyn Painter>,
        canvas: Canvas,
        mode: FixMode,
    ) -> Option<Engine> {
        self.take(LoadStep::WarmUp, || painter::paint_once(owned.as_mut(), canvas, mode))?;
        Some(Engine::Painter(owned))
    }

    fn load_net(
        &mut self,
        manifest: &Manifest,
        task: NetTask<'_>,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let how = self.how;
        let mut session = self.open(manifest, runtime, Runtime::open_net)?;
        self.take(LoadStep::Contract, || net::contract(&session, task))?;
        self.runs()?;
        self.take(LoadStep::WarmUp, || net::warm_up(&mut session, task))?;
        let is_due = |golden: &&Golden| how == How::EveryReason || golden.when == GoldenWhen::Load;
        for golden in manifest.golden.iter().filter(is_due) {
            self.take(LoadStep::Golden, || {
                net::try_golden(&mut session, task, &manifest.folder, golden)
            })?;
        }
        if let (NetTask::Upscale(upscale), How::EveryReason) = (task, how)
            && upscale.tiling.mode == TilingMode::Exact
        {
            let device = runtime.device();
            self.take(LoadStep::Tiling, || net::tile_exactly(&mut session, upscale, device))?;
        }
        Some(Engine::Net(Box::new(session)))
    }

    /// Nothing, when the load ends before anything is run.
    fn runs(&self) -> Option<()> {
        (self.how != How::WithoutRuns).then_some(())
    }

    /// Takes one step; nothing, when the load ends with it.
    fn take<T>(&mut self, step: LoadStep, take: impl FnOnce() -> Outcome<T>) -> Option<T> {
        let started = Instant::now();
        let Outcome { finding, reasons, value } = take();
        let took = started.elapsed();
        let is_passed = reasons.is_empty();
        if is_passed {
            (self.report)(StepReport { step, took, outcome: Ok(finding) });
        }
        for reason in reasons {
            (self.report)(StepReport { step, took, outcome: Err(reason.clone()) });
            self.refusals.push(Refusal { step, reason });
        }
        value.filter(|_| is_passed || self.how != How::StopAtFirst)
    }
}
