//! The checks of a load, task by task, as lists of the steps that [`LoadStep`] names. Each step is a file here.

use std::borrow::Cow;
use std::time::Instant;

use retouch_catalog::FixMode;
use retouch_pixels::patch::Canvas;

use super::kept::{BatchAxis, Kept, Rewrites};
use super::opened::Opened;
use super::steps::{CheckMode, LoadStep, Outcome, Refusal, StepReport};
use crate::manifest::{
    self, Exemplar, Fill, Golden, GoldenWhen, Inpaint, Manifest, NetTask, Precision, Safety, Task,
    TilingMode,
};
use crate::onnx;
use crate::painter::{ExemplarPainter, FillPainter, InpaintPainter, Painter};
use crate::safety::SafetyChecker;
use crate::segment_anything::SegmentAnything;
use crate::session::{PictureNet, Runtime, Session, SessionError};

mod batch;
mod checksum;
mod contract;
mod crops;
mod engine;
mod external_files;
mod golden;
mod passed;
mod placeholder;
mod precision;
mod reference;
mod run;
mod samples;
mod tiling;
mod warm_up;

use checksum::Files;
pub use engine::Reference;
use passed::Passed;
pub use samples::sample_painting;

/// The result of a load.
pub struct Loaded {
    /// The model, if it can run as its manifest says. With refusals, it must not serve.
    pub opened: Option<Opened>,
    /// Every reason to refuse the model that the check mode looks for.
    pub refusals: Vec<Refusal>,
}

/// Takes the steps of a load from [`LoadStep::Checksum`] on. Calls `report` after each. `kept` receives what loading the
/// model again takes.
pub fn load(
    manifest: &Manifest,
    runtime: &Runtime,
    mode: CheckMode,
    kept: &mut Kept,
    report: impl FnMut(StepReport),
) -> Loaded {
    let passed = Passed::of(manifest, runtime);
    let is_known = mode == CheckMode::FailFast && passed.is_known();
    let mut steps = Steps::new(mode, is_known, kept, report);
    let opened = steps.load(manifest, runtime);
    let has_passed = opened.is_some() && steps.refusals.is_empty();
    // A record would say that 16 bits have passed.
    if has_passed && mode != CheckMode::WithoutRuns && !is_known && !steps.gave_up_half {
        passed.record();
    }
    Loaded { opened, refusals: steps.refusals }
}

/// Opens a model again that has passed its checks. Its checksums are compared again; nothing runs it.
///
/// # Errors
/// Why it cannot be opened, in one sentence.
pub fn load_again(
    manifest: &Manifest,
    runtime: &Runtime,
    kept: &mut Kept,
) -> Result<Opened, String> {
    let (mode, report) = (CheckMode::FailFast, |_| {});
    let mut steps = Steps { is_again: true, ..Steps::new(mode, true, kept, report) };
    let opened = steps.load(manifest, runtime);
    let reason = steps.refusals.pop().map(|refusal| refusal.reason);
    opened.ok_or_else(|| reason.unwrap_or_else(|| "a step failed without a reason".to_owned()))
}

/// Opens the engine of a net that serves without it, on a runtime that opens engines, and compares both.
///
/// # Errors
/// Why the engine must not serve; `None` if `may_go_on` returned false.
pub fn load_engine(
    manifest: &Manifest,
    runtime: &Runtime,
    rewrites: Rewrites,
    reference: &Reference,
    may_go_on: impl Fn() -> bool,
) -> Result<Opened, Option<String>> {
    // The model's thread reads the kept files at the same time, so this opens them again, and compares their checksums.
    let mut kept = Kept::new(false);
    kept.rewrites = rewrites;
    let mut engine = load_again(manifest, runtime, &mut kept).map_err(Some)?;
    if let (Opened::Net(net), Some(task)) = (&mut engine, manifest.task.net()) {
        engine::compare(net, (manifest, task), runtime, reference, may_go_on)?;
    }
    Ok(engine)
}

struct Steps<'a, R> {
    mode: CheckMode,
    /// Whether the model has passed before, so that no check needs to run it.
    is_known: bool,
    /// Whether this process has loaded the model before, from its kept files.
    is_again: bool,
    /// Whether a net was to compute in 16 bits, and failed a check then.
    gave_up_half: bool,
    kept: &'a mut Kept,
    report: R,
    refusals: Vec<Refusal>,
}

impl<'a, R: FnMut(StepReport)> Steps<'a, R> {
    const fn new(mode: CheckMode, is_known: bool, kept: &'a mut Kept, report: R) -> Self {
        let refusals = Vec::new();
        Self { mode, is_known, is_again: false, gave_up_half: false, kept, report, refusals }
    }

    fn load(&mut self, manifest: &Manifest, runtime: &Runtime) -> Option<Opened> {
        match &manifest.task {
            Task::Segmentation(contract) => {
                self.load_net(manifest, NetTask::Segmentation(contract), runtime)
            }
            Task::Upscale(contract) => self.load_net(manifest, NetTask::Upscale(contract), runtime),
            Task::Safety(contract) => self.load_safety_net(manifest, contract, runtime),
            Task::Exemplar(contract) => self.load_exemplar(contract),
            Task::Fill(contract) => self.load_fill(manifest, contract, runtime),
            Task::SegmentAnything(contract) => {
                self.load_segment_anything(manifest, contract, runtime)
            }
            Task::SdInpaint(contract) | Task::Flux2Klein(contract) => {
                self.load_pipeline(manifest, contract, runtime)
            }
        }
    }

    /// A net that takes a picture, with one output.
    fn load_net(
        &mut self,
        manifest: &Manifest,
        task: NetTask<'_>,
        runtime: &Runtime,
    ) -> Option<Opened> {
        let files = self.read_files(manifest)?;
        // A file that cannot be read is refused when it is opened.
        if let (false, Ok(ports)) = (self.is_again, onnx::ports(&files.model)) {
            self.take(LoadStep::Contract, || contract::check(&ports, task))?;
        }
        let Rewrites { precision, batch_axis } = self.kept.rewrites;
        let open = || {
            let mut model = Cow::Borrowed(files.model.as_slice());
            if precision == Precision::F16 {
                model = Cow::Owned(precision::convert_known(runtime, &model)?);
            }
            batch::open_known(runtime, task, batch_axis, &model, &files.extra)
        };
        let mut net = self.open(manifest, runtime, open)?;
        if self.is_again {
            return Some(Opened::Net(Box::new(net)));
        }
        self.may_run()?;
        if runtime.precision(task.precision()) == Precision::F16 {
            let (opened, in_half) = self.take(LoadStep::Precision, || {
                precision::open(&manifest.name, net, task, &files, runtime)
            })?;
            net = opened;
            if let Some(model) = in_half {
                let in_half = Files { model, extra: files.extra.clone() };
                match self.prove_in_half(manifest, task, runtime, net, in_half) {
                    Ok(net) => return Some(Opened::Net(Box::new(net))),
                    Err(reason) => {
                        (net, _) = self.take(LoadStep::Precision, || {
                            precision::open_in_full(&manifest.name, &reason, task, &files, runtime)
                        })?;
                    }
                }
            }
        }
        let net = self.prove(manifest, task, runtime, net, files)?;
        Some(Opened::Net(Box::new(net)))
    }

    /// Takes the steps that run a net, for one that computes in 16 bits. Reports them if none fails.
    ///
    /// # Errors
    /// Why one failed: then the net must compute as its file says.
    fn prove_in_half(
        &mut self,
        manifest: &Manifest,
        task: NetTask<'_>,
        runtime: &Runtime,
        net: PictureNet,
        files: Files,
    ) -> Result<PictureNet, String> {
        let mut reports = Vec::new();
        self.kept.rewrites.precision = Precision::F16;
        let report = |report| reports.push(report);
        let mut trial = Steps::new(self.mode, self.is_known, &mut *self.kept, report);
        let proven = trial.prove(manifest, task, runtime, net, files);
        let refusals = trial.refusals;
        match proven {
            Some(net) if refusals.is_empty() => {
                reports.into_iter().for_each(&mut self.report);
                Ok(net)
            }
            _ => {
                self.kept.rewrites = Rewrites::default();
                self.gave_up_half = true;
                let reasons: Vec<_> = refusals.into_iter().map(|refusal| refusal.reason).collect();
                Err(reasons.join("; "))
            }
        }
    }

    /// Takes the steps that run a net.
    fn prove(
        &mut self,
        manifest: &Manifest,
        task: NetTask<'_>,
        runtime: &Runtime,
        mut net: PictureNet,
        files: Files,
    ) -> Option<PictureNet> {
        let mode = self.mode;
        if runtime.batching().0 > 1 {
            let is_open_in_file = net.takes_batches();
            net = self.take(LoadStep::Batch, || {
                batch::open(&manifest.name, net, task, &files, runtime)
            })?;
            self.kept.rewrites.batch_axis = match (is_open_in_file, net.takes_batches()) {
                (false, true) => BatchAxis::Opened,
                (true, false) => BatchAxis::Unused,
                (false, false) | (true, true) => BatchAxis::AsInFile,
            };
        }
        drop(files);
        if self.is_known {
            return Some(net);
        }
        self.take(LoadStep::WarmUp, || warm_up::run_net(&mut net, task))?;
        if mode == CheckMode::Thorough {
            self.take(LoadStep::Placement, || run::place(&mut net, task))?;
        }
        let is_due =
            |golden: &&Golden| mode == CheckMode::Thorough || golden.when == GoldenWhen::Load;
        for golden in manifest.golden.iter().filter(is_due) {
            self.take(LoadStep::Golden, || {
                golden::compare(&mut net, task, &manifest.folder, golden)
            })?;
        }
        if let (NetTask::Upscale(upscale), CheckMode::Thorough) = (task, mode)
            && upscale.tiling.mode == TilingMode::Exact
        {
            let (device, precision) = (runtime.device(), self.kept.rewrites.precision);
            self.take(LoadStep::Tiling, || tiling::compare(&mut net, upscale, device, precision))?;
        }
        Some(net)
    }

    fn load_safety_net(
        &mut self,
        manifest: &Manifest,
        contract: &Safety,
        runtime: &Runtime,
    ) -> Option<Opened> {
        let session = self.open_session(manifest, runtime)?;
        let mut checker =
            self.take(LoadStep::Contract, || match SafetyChecker::new(session, contract) {
                Ok(checker) => Outcome::passed("picture → probabilities".to_owned(), checker),
                Err(reasons) => Outcome::refused_for(reasons),
            })?;
        self.may_run()?;
        if !self.is_known {
            self.take(LoadStep::WarmUp, || warm_up::run_safety_net(&mut checker))?;
        }
        Some(Opened::SafetyChecker(Box::new(checker)))
    }

    fn load_exemplar(&mut self, contract: &Exemplar) -> Option<Opened> {
        self.may_run()?;
        let painter = Box::new(ExemplarPainter::new(contract));
        self.warm_up_painter(painter, contract.canvas, FixMode::Remove)
    }

    fn load_fill(
        &mut self,
        manifest: &Manifest,
        contract: &Fill,
        runtime: &Runtime,
    ) -> Option<Opened> {
        let session = self.open_session(manifest, runtime)?;
        let painter =
            self.take(LoadStep::Contract, || match FillPainter::new(session, contract) {
                Ok(painter) => Outcome::passed("picture and mask → picture".to_owned(), painter),
                Err(reasons) => Outcome::refused_for(reasons),
            })?;
        self.may_run()?;
        let mut painter: Box<dyn Painter> = Box::new(painter);
        if !self.is_known {
            self.take(LoadStep::WarmUp, || warm_up::run_fill(painter.as_mut(), contract.canvas))?;
        }
        Some(Opened::Painter(painter))
    }

    /// A text-guided pipeline. Opening it also checks the inputs and outputs of its nets.
    fn load_pipeline(
        &mut self,
        manifest: &Manifest,
        contract: &Inpaint,
        runtime: &Runtime,
    ) -> Option<Opened> {
        self.check_files(manifest)?;
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
        let mut painter: Box<dyn Painter> = Box::new(painter);
        let takes_batches = runtime.batching().0 > 1 && painter.takes_batches();
        if takes_batches && self.is_again {
            if self.kept.rewrites.batch_axis == BatchAxis::Unused {
                painter.run_alone();
            }
        } else if takes_batches {
            painter = self.take(LoadStep::Batch, || {
                crops::prove(&manifest.name, painter, contract.canvas, fix_mode)
            })?;
            if !painter.takes_batches() {
                self.kept.rewrites.batch_axis = BatchAxis::Unused;
            }
        }
        let opened = self.warm_up_painter(painter, contract.canvas, fix_mode)?;
        let due = contract.reference.as_ref().filter(|_| self.mode == CheckMode::Thorough);
        if let Some(reference) = due {
            let reference = manifest.folder.join(reference);
            self.take(LoadStep::Golden, || {
                reference::compare(&manifest.folder, &reference, runtime)
            })?;
        }
        Some(opened)
    }

    /// An encoder of pictures and a decoder of clicks.
    fn load_segment_anything(
        &mut self,
        manifest: &Manifest,
        contract: &manifest::SegmentAnything,
        runtime: &Runtime,
    ) -> Option<Opened> {
        self.check_files(manifest)?;
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
        if !self.is_again {
            self.take(LoadStep::WarmUp, || warm_up::run_segment_anything(&mut model, contract))?;
        }
        Some(Opened::SegmentAnything(Box::new(model)))
    }

    fn warm_up_painter(
        &mut self,
        mut painter: Box<dyn Painter>,
        canvas: Canvas,
        mode: FixMode,
    ) -> Option<Opened> {
        if !self.is_known {
            self.take(LoadStep::WarmUp, || warm_up::run_painter(painter.as_mut(), canvas, mode))?;
        }
        Some(Opened::Painter(painter))
    }

    /// The steps until the files of one graph are read.
    fn read_files(&mut self, manifest: &Manifest) -> Option<Files> {
        let mode = self.mode;
        let files =
            self.take_kept(LoadStep::Checksum, |kept| checksum::read(manifest, mode, kept))?;
        if !self.is_again {
            self.take(LoadStep::Files, || external_files::check(manifest, &files))?;
        }
        Some(files)
    }

    /// The steps before ONNX Runtime opens the files of a pipeline by their paths.
    fn check_files(&mut self, manifest: &Manifest) -> Option<()> {
        let mode = self.mode;
        self.take_kept(LoadStep::Checksum, |kept| checksum::check(manifest, mode, kept))?;
        if !self.is_again {
            self.take(LoadStep::Files, || external_files::check_pipeline(manifest))?;
        }
        Some(())
    }

    /// The steps until one ONNX file is open whose tensors the session converts.
    fn open_session(&mut self, manifest: &Manifest, runtime: &Runtime) -> Option<Session> {
        let files = self.read_files(manifest)?;
        self.open(manifest, runtime, || runtime.open(&files.model, &files.extra))
    }

    /// Opens a model from the bytes whose checksum was checked.
    fn open<T>(
        &mut self,
        manifest: &Manifest,
        runtime: &Runtime,
        open: impl FnOnce() -> Result<T, SessionError>,
    ) -> Option<T> {
        self.take(LoadStep::Open, || match open() {
            Ok(opened) => Outcome::passed(format!("opened on {}", runtime.device()), opened),
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
        self.take_kept(step, |_| check())
    }

    /// Same, for a step that needs the kept files.
    fn take_kept<T>(
        &mut self,
        step: LoadStep,
        check: impl FnOnce(&mut Kept) -> Outcome<T>,
    ) -> Option<T> {
        let started = Instant::now();
        let Outcome { finding, reasons, value } = check(self.kept);
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
