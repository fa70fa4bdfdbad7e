//! The steps of a load, each of which can refuse a model with a reason.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ndarray::Array4;

use super::files;
use crate::models::manifest::{Golden, GoldenWhen, Manifest, Range, Segmentation, Task, Upscale};
use crate::models::session::{Port, Runtime, Session};
use crate::pipeline::alpha::to_alpha;
use crate::pipeline::decode::decode;
use crate::pipeline::tensor::to_tensor;
use crate::pipeline::tile::{self, Region, Trim};
use crate::pipeline::{Limits, Picture};

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
    /// All is right, but only a restart of the worker can follow it.
    Restart,
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
            Self::Restart => "restart",
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
    /// As far as anything can still be judged, and with every golden picture: for whoever has to mend it.
    EveryReason,
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

/// What came of a load.
pub struct Loaded {
    /// The model, if it could be run as its manifest says; beside refusals it is good for nothing but
    /// measuring.
    pub session: Option<Session>,
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
    let session = steps.load(manifest, runtime);
    Loaded { session, refusals: steps.refusals }
}

struct Steps<R> {
    how: How,
    report: R,
    refusals: Vec<Refusal>,
}

impl<R: FnMut(StepReport)> Steps<R> {
    fn load(&mut self, manifest: &Manifest, runtime: &Runtime) -> Option<Session> {
        let (task, how) = (&manifest.task, self.how);
        let files = self.take(LoadStep::Checksum, || files::read(manifest, how))?;
        self.take(LoadStep::Files, || files::stay_inside(manifest, &files))?;
        let mut session =
            self.take(LoadStep::Open, || match runtime.open(&files.model, &files.extra) {
                Ok(session) => Outcome::passed(format!("opened on {}", runtime.device()), session),
                Err(error) => Outcome::refused(error.to_string()),
            })?;
        drop(files);
        self.take(LoadStep::Contract, || contract(&session, task))?;
        self.take(LoadStep::WarmUp, || warm_up(&mut session, task))?;
        let is_due = |golden: &&Golden| how == How::EveryReason || golden.when == GoldenWhen::Load;
        for golden in manifest.golden.iter().filter(is_due) {
            self.take(LoadStep::Golden, || try_golden(&mut session, manifest, golden))?;
        }
        Some(session)
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
        value.filter(|_| is_passed || self.how == How::EveryReason)
    }
}

fn contract(session: &Session, task: &Task) -> Outcome<()> {
    let (input_shape, output_shape) = match task {
        Task::Segmentation(Segmentation { input, .. }) => {
            let (width, height) = (u64::from(input.width), u64::from(input.height));
            let fixed = |channels| [Some(1), Some(channels), Some(height), Some(width)];
            (fixed(3), fixed(1))
        }
        // Tiles have many sizes.
        Task::Upscale(_) => ([Some(1), Some(3), None, None], [Some(1), Some(3), None, None]),
    };
    let inputs = session.inputs();
    let mut reasons = Vec::new();
    reasons.extend(check_port("input", &inputs, task.input(), input_shape).err());
    // One that is named wrongly has been told of; the others are what the model needs beside it.
    if inputs.iter().any(|port| port.name == task.input()) {
        let beside = inputs.iter().filter(|port| port.name != task.input());
        reasons.extend(beside.map(|port| format!("the model also needs an input {:?}", port.name)));
    }
    reasons.extend(check_port("output", &session.outputs(), task.output(), output_shape).err());
    let finding = format!(
        "{} f32{} → {} f32{}",
        task.input(),
        shape_text(&input_shape),
        task.output(),
        shape_text(&output_shape)
    );
    let value = reasons.is_empty().then_some(());
    Outcome { finding, reasons, value }
}

fn shape_text(shape: &[Option<u64>]) -> String {
    let sizes: Vec<_> =
        shape.iter().map(|size| size.map_or("?".to_owned(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}

/// A size that the manifest leaves open must be open in the graph too; one that it states must be that or
/// open.
fn check_port(
    kind: &str,
    ports: &[Port],
    name: &str,
    shape: [Option<u64>; 4],
) -> Result<(), String> {
    let Some(port) = ports.iter().find(|port| port.name == name) else {
        let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        return Err(format!("the model has no {kind} {name:?}; it has {}", names.join(", ")));
    };
    if !port.is_f32 {
        return Err(format!("{kind} {name:?} holds {}, the manifest says f32", port.element));
    }
    let fits = port.shape.len() == shape.len()
        && port.shape.iter().zip(shape).all(|pair| match pair {
            (Some(size), Some(wanted)) => *size == wanted,
            (Some(_), None) => false,
            (None, _) => true,
        });
    if fits {
        Ok(())
    } else {
        Err(format!(
            "{kind} {name:?} has shape {}, the manifest makes it {}",
            shape_text(&port.shape),
            shape_text(&shape)
        ))
    }
}

fn warm_up(session: &mut Session, task: &Task) -> Outcome<()> {
    let picture = disc_on_gradient();
    let input = match task {
        Task::Segmentation(segmentation) => to_tensor(&picture, &segmentation.input),
        Task::Upscale(upscale) => one_tile(&picture, upscale).1,
    };
    let output = match run(session, task, &input) {
        Ok(output) => output,
        Err(reason) => return Outcome::refused(reason),
    };
    let (low, high) = output
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let finding = format!("output in {low:.3}..{high:.3}");
    let reasons = Vec::from_iter(insanity(task, &input, &output, low, high));
    // Golden pictures may still say more.
    Outcome { finding, reasons, value: Some(()) }
}

/// What is wrong with an output, given its smallest and largest value.
fn insanity(
    task: &Task,
    input: &Array4<f32>,
    output: &Array4<f32>,
    low: f32,
    high: f32,
) -> Option<String> {
    let (channels, scale) = match task {
        Task::Segmentation(_) => (1, 1),
        Task::Upscale(upscale) => (3, upscale.upscale.scale as usize),
    };
    let expected = [1, channels, input.shape()[2] * scale, input.shape()[3] * scale];
    if output.shape() != expected {
        let shape = output.shape();
        return Some(format!("its output has shape {shape:?}, the manifest makes it {expected:?}"));
    }
    let broken = output.iter().filter(|value| !value.is_finite()).count();
    if broken > 0 {
        return Some(format!("{broken} of {} output values are not numbers", output.len()));
    }
    match task {
        Task::Segmentation(segmentation) => {
            // Half a unit of overshoot is no reason to refuse: it is cut off.
            let is_sane = match segmentation.postprocess.range {
                Range::Clip => low >= -0.5 && high <= 1.5,
                Range::Minmax | Range::Sigmoid => high > low && low.abs().max(high.abs()) < 1e4,
            };
            (!is_sane).then(|| format!("its output lies in {low}..{high}, which is no map"))
        }
        // Generative upscalers overshoot; what is far from 0..1 is another range, or noise.
        Task::Upscale(_) => (low < -1.0 || high > 2.0)
            .then(|| format!("its output lies in {low}..{high}, not in 0..1")),
    }
}

/// A whole picture as one tile.
fn one_tile(picture: &Picture, upscale: &Upscale) -> (Region, Array4<f32>) {
    let region = Region { x: 0..picture.width, y: 0..picture.height };
    let Upscale { input, tiling, .. } = upscale;
    let cut = tile::cut(picture, &region, tiling.padding, tiling.multiple_of);
    let tensor = tile::to_tensor(&cut, input);
    (region, tensor)
}

/// A picture that any model of subjects has something to say about.
fn disc_on_gradient() -> Picture {
    const SIDE: i32 = 128;
    let mut rgb = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let distance = (x - SIDE / 2).pow(2) + (y - SIDE / 2).pow(2);
            let pixel = if distance < 40 * 40 { [230, 120, 40] } else { [40, 60, 90 + y as u8] };
            rgb.extend(pixel);
        }
    }
    Picture { width: SIDE as u32, height: SIDE as u32, rgb, alpha: None, gray: false, icc: None }
}

fn run(session: &mut Session, task: &Task, input: &Array4<f32>) -> Result<Array4<f32>, String> {
    session.run(task.input(), input, task.output()).map_err(|error| error.to_string())
}

fn try_golden(session: &mut Session, manifest: &Manifest, golden: &Golden) -> Outcome<()> {
    let (name, tolerance) = (golden.image.display(), golden.tolerance);
    let (finding, reason) = match golden_error(session, manifest, golden) {
        Ok(error) => (
            format!("{name} off by {error:.5}, at most {tolerance} is accepted"),
            (error.is_nan() || error > tolerance).then(|| {
                format!(
                    "{name}: the result is off by {error:.4} on average, at most {tolerance} is accepted"
                )
            }),
        ),
        Err(reason) => (String::new(), Some(format!("{name}: {reason}"))),
    };
    // The other golden pictures say more.
    Outcome { finding, reasons: Vec::from_iter(reason), value: Some(()) }
}

/// The mean absolute error of the result's samples as 0..=1.
fn golden_error(
    session: &mut Session,
    manifest: &Manifest,
    golden: &Golden,
) -> Result<f32, String> {
    let picture_at = |path: &Path| {
        let bytes = fs::read(manifest.folder.join(path)).map_err(|error| error.to_string())?;
        decode(&bytes, &Limits::default()).map_err(|error| error.to_string())
    };
    let picture = picture_at(&golden.image)?;
    let expected = picture_at(&golden.expected)?;
    let (scale, made, expected_samples): (u32, Vec<u8>, Vec<u8>) = match &manifest.task {
        Task::Segmentation(segmentation) => {
            let map = run(session, &manifest.task, &to_tensor(&picture, &segmentation.input))?;
            let alpha = to_alpha(&map, segmentation.postprocess, &picture)
                .map_err(|error| error.to_string())?;
            (1, alpha, expected.rgb.iter().copied().step_by(3).collect())
        }
        Task::Upscale(upscale) => {
            let (region, tensor) = one_tile(&picture, upscale);
            let output = run(session, &manifest.task, &tensor)?;
            let scale = upscale.upscale.scale;
            let trim = Trim { padding: upscale.tiling.padding, scale, halve: false };
            let [red, green, blue] =
                tile::planes(&output, &region, trim).map_err(|error| error.to_string())?;
            let made = red.iter().zip(&green).zip(&blue);
            let made = made.flat_map(|((r, g), b)| [*r, *g, *b].map(tile::to_byte)).collect();
            (scale, made, expected.rgb.clone())
        }
    };
    if (expected.width, expected.height) != (picture.width * scale, picture.height * scale) {
        return Err(match scale {
            1 => "the expected result has another size".to_owned(),
            _ => format!("the expected result is not {scale} times its size"),
        });
    }
    let sum: u64 = made.iter().zip(&expected_samples).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    Ok(sum as f32 / 255.0 / made.len() as f32)
}
