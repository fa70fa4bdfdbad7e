//! The checks of a load, task by task, as lists of the steps that [`LoadStep`] names. Each step is a file here.

use std::time::Instant;

use retouch_catalog::FixMode;
use retouch_pixels::patch::Canvas;

use super::engine::Engine;
use super::steps::{CheckMode, LoadStep, Outcome, Refusal, StepReport};
use crate::manifest::{
    self, Exemplar, Fill, Golden, GoldenWhen, Inpaint, Manifest, NetTask, Safety, Task, TilingMode,
};
use crate::painter::{ExemplarPainter, FillPainter, InpaintPainter, Painter};
use crate::safety::SafetyChecker;
use crate::segment_anything::SegmentAnything;
use crate::session::{ExtraFile, Runtime, Session, SessionError};

mod checksum;
mod contract;
mod external_files;
mod golden;
mod passed;
mod placeholder;
mod reference;
mod run;
mod samples;
mod tiling;
mod warm_up;

use passed::Passed;
pub use samples::sample_painting;

/// The result of a load.
pub struct Loaded {
    /// The model, if it can run as its manifest says. With refusals, it must not serve.
    pub engine: Option<Engine>,
    /// Every reason to refuse the model that the check mode looks for.
    pub refusals: Vec<Refusal>,
}

/// Takes the steps of a load from [`LoadStep::Checksum`] on. Calls `report` after each.
pub fn load(
    manifest: &Manifest,
    runtime: &Runtime,
    mode: CheckMode,
    report: impl FnMut(StepReport),
) -> Loaded {
    let passed = Passed::of(manifest, runtime);
    let is_known = mode == CheckMode::FailFast && passed.is_known();
    let mut steps = Steps { mode, is_known, report, refusals: Vec::new() };
    let engine = match &manifest.task {
        Task::Segmentation(contract) => {
            steps.load_net(manifest, NetTask::Segmentation(contract), runtime)
        }
        Task::Upscale(contract) => steps.load_net(manifest, NetTask::Upscale(contract), runtime),
        Task::Safety(contract) => steps.load_safety_net(manifest, contract, runtime),
        Task::Exemplar(contract) => steps.load_exemplar(contract),
        Task::Fill(contract) => steps.load_fill(manifest, contract, runtime),
        Task::SegmentAnything(contract) => steps.load_segment_anything(manifest, contract, runtime),
        Task::SdInpaint(contract) | Task::Flux2Klein(contract) => {
            steps.load_pipeline(manifest, contract, runtime)
        }
    };
    if engine.is_some() && steps.refusals.is_empty() && mode != CheckMode::WithoutRuns && !is_known
    {
        passed.record();
    }
    Loaded { engine, refusals: steps.refusals }
}

struct Steps<R> {
    mode: CheckMode,
    /// Whether the model has passed before, so that no check needs to run it.
    is_known: bool,
    report: R,
    refusals: Vec<Refusal>,
}

impl<R: FnMut(StepReport)> Steps<R> {
    /// A net with one input tensor and one output tensor.
    fn load_net(
        &mut self,
        manifest: &Manifest,
        task: NetTask<'_>,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let mode = self.mode;
        let mut session = self.open(manifest, runtime, Runtime::open_net)?;
        self.take(LoadStep::Contract, || contract::check(&session, task))?;
        self.may_run()?;
        if self.is_known {
            return Some(Engine::Net(Box::new(session)));
        }
        self.take(LoadStep::WarmUp, || warm_up::run_net(&mut session, task))?;
        let is_due =
            |golden: &&Golden| mode == CheckMode::Thorough || golden.when == GoldenWhen::Load;
        for golden in manifest.golden.iter().filter(is_due) {
            self.take(LoadStep::Golden, || {
                golden::compare(&mut session, task, &manifest.folder, golden)
            })?;
        }
        if let (NetTask::Upscale(upscale), CheckMode::Thorough) = (task, mode)
            && upscale.tiling.mode == TilingMode::Exact
        {
            let device = runtime.device();
            self.take(LoadStep::Tiling, || tiling::compare(&mut session, upscale, device))?;
        }
        Some(Engine::Net(Box::new(session)))
    }

    fn load_safety_net(
        &mut self,
        manifest: &Manifest,
        contract: &Safety,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let session = self.open(manifest, runtime, Runtime::open)?;
        let mut checker =
            self.take(LoadStep::Contract, || match SafetyChecker::new(session, contract) {
                Ok(checker) => Outcome::passed("picture → probabilities".to_owned(), checker),
                Err(reasons) => Outcome::refused_for(reasons),
            })?;
        self.may_run()?;
        if !self.is_known {
            self.take(LoadStep::WarmUp, || warm_up::run_safety_net(&mut checker))?;
        }
        Some(Engine::SafetyChecker(Box::new(checker)))
    }

    fn load_exemplar(&mut self, contract: &Exemplar) -> Option<Engine> {
        self.may_run()?;
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
                Ok(painter) => Outcome::passed("picture and mask → picture".to_owned(), painter),
                Err(reasons) => Outcome::refused_for(reasons),
            })?;
        self.may_run()?;
        self.warm_up_painter(Box::new(painter), contract.canvas, FixMode::Remove)
    }

    /// A text-guided pipeline. Opening it also checks the inputs and outputs of its nets.
    fn load_pipeline(
        &mut self,
        manifest: &Manifest,
        contract: &Inpaint,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let mode = self.mode;
        self.take(LoadStep::Checksum, || checksum::check(manifest, mode))?;
        let painter = self.take(LoadStep::Open, || {
            let folder = &manifest.folder;
            let opened = match &manifest.task {
                Task::Flux2Klein(_) => InpaintPainter::flux2_klein(folder, contract, runtime),
                _ => InpaintPainter::sd_inpaint(folder, contract, runtime),
            };
            match opened {
                Ok(painter) => {
                    let finding =
                        format!("{}, opened on {}", painter.description(), runtime.device());
                    Outcome::passed(finding, painter)
                }
                Err(error) => Outcome::refused(error.to_string()),
            }
        })?;
        self.may_run()?;
        let fix_mode = contract.strength.keys().next().copied().unwrap_or(FixMode::Edit);
        let engine = self.warm_up_painter(Box::new(painter), contract.canvas, fix_mode)?;
        let due = contract.reference.as_ref().filter(|_| mode == CheckMode::Thorough);
        if let Some(reference) = due {
            let reference = manifest.folder.join(reference);
            self.take(LoadStep::Golden, || {
                reference::compare(&manifest.folder, &reference, runtime)
            })?;
        }
        Some(engine)
    }

    /// An encoder of pictures and a decoder of clicks.
    fn load_segment_anything(
        &mut self,
        manifest: &Manifest,
        contract: &manifest::SegmentAnything,
        runtime: &Runtime,
    ) -> Option<Engine> {
        let mode = self.mode;
        self.take(LoadStep::Checksum, || checksum::check(manifest, mode))?;
        let mut model = self.take(LoadStep::Open, || {
            match SegmentAnything::open(&manifest.folder, contract, runtime) {
                Ok(model) => {
                    let finding =
                        format!("{}, opened on {}", model.description(), runtime.device());
                    Outcome::passed(finding, model)
                }
                Err(reasons) => Outcome::refused_for(reasons),
            }
        })?;
        self.may_run()?;
        self.take(LoadStep::WarmUp, || warm_up::run_segment_anything(&mut model, contract))?;
        Some(Engine::SegmentAnything(Box::new(model)))
    }

    fn warm_up_painter(
        &mut self,
        mut painter: Box<dyn Painter>,
        canvas: Canvas,
        mode: FixMode,
    ) -> Option<Engine> {
        if !self.is_known {
            self.take(LoadStep::WarmUp, || warm_up::run_painter(painter.as_mut(), canvas, mode))?;
        }
        Some(Engine::Painter(painter))
    }

    /// The steps until one ONNX file is open. The session is opened from the bytes whose checksum was checked.
    fn open(
        &mut self,
        manifest: &Manifest,
        runtime: &Runtime,
        open: impl FnOnce(&Runtime, &[u8], &[ExtraFile]) -> Result<Session, SessionError>,
    ) -> Option<Session> {
        let mode = self.mode;
        let files = self.take(LoadStep::Checksum, || checksum::read(manifest, mode))?;
        self.take(LoadStep::Files, || external_files::check(manifest, &files))?;
        self.take(LoadStep::Open, || match open(runtime, &files.model, &files.extra) {
            Ok(session) => Outcome::passed(format!("opened on {}", runtime.device()), session),
            Err(error) => {
                let file = manifest.files.first().map_or("", |own| own.file.as_str());
                Outcome::refused(format!(
                    "{file} cannot be opened: {error}; if it is not a complete ONNX model, get it or export it again"
                ))
            }
        })
    }

    /// Returns `None` if the load ends before the first run.
    fn may_run(&self) -> Option<()> {
        (self.mode != CheckMode::WithoutRuns).then_some(())
    }

    /// Takes and reports one step. Returns `None` if the load ends with it.
    fn take<T>(&mut self, step: LoadStep, check: impl FnOnce() -> Outcome<T>) -> Option<T> {
        let started = Instant::now();
        let Outcome { finding, reasons, value } = check();
        let took = started.elapsed();
        let is_passed = reasons.is_empty();
        if is_passed {
            (self.report)(StepReport { step, took, outcome: Ok(finding) });
        }
        for reason in reasons {
            (self.report)(StepReport { step, took, outcome: Err(reason.clone()) });
            self.refusals.push(Refusal { step, reason });
        }
        value.filter(|_| is_passed || self.mode != CheckMode::FailFast)
    }
}
