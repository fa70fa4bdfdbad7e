//! What a manifest says about a model that repaints a part of a picture.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use retouch_catalog::FixMode;
use retouch_pixels::patch::Canvas;
use serde::Deserialize;

use super::contract::Output;
use crate::diffusion::scheduler::start_index;

/// A fill from the picture itself, with no weights.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exemplar {
    /// What it paints on.
    pub canvas: Canvas,
    /// What it can do.
    pub modes: BTreeSet<FixMode>,
    /// Pixels of the largest size that is searched; larger surroundings are searched at half the size.
    pub search_pixels: usize,
}

/// A net that fills a hole, without words: a picture and a mask in, the picture out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// What it paints on.
    pub canvas: Canvas,
    /// What it can do.
    pub modes: BTreeSet<FixMode>,
    /// The picture: `[1, 3, height, width]`, R, G, B.
    pub image: FillImage,
    /// The mask: `[1, 1, height, width]`, of the same type as the picture.
    pub mask: FillMask,
    /// The picture filled: `[1, 3, height, width]`.
    pub output: Output,
    /// What the brightest sample of the output is: 255, or 1.
    pub output_white: f32,
}

/// The type of what a fill takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FillElement {
    /// 32-bit floats.
    F32,
    /// Bytes.
    U8,
}

/// The picture that a fill takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillImage {
    /// The tensor's name in the graph.
    pub name: String,
    /// The type of its elements.
    pub element: FillElement,
    /// What the brightest sample is: 255, or 1.
    pub white: f32,
    /// Whether the pixels to fill are set to black before.
    #[serde(default)]
    pub blanks_hole: bool,
}

/// The mask that a fill takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillMask {
    /// The tensor's name in the graph.
    pub name: String,
    /// The value of pixels to fill.
    pub fill: f32,
    /// The value of pixels to keep.
    pub keep: f32,
}

/// A pipeline of several nets that paints what words say: a folder as diffusers and optimum write it. Its
/// nets say themselves what they take and give.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inpaint {
    /// What it paints on.
    pub canvas: Canvas,
    /// How it is sampled.
    pub sampling: Sampling,
    /// What it can do, and how much of what was there it forgets then: 1 is all, 0.3 little.
    pub strength: BTreeMap<FixMode, f64>,
    /// The words it knows, in lower case; a prompt with another is refused. Without it, it takes any.
    pub vocabulary: Option<Vec<String>>,
    /// Whether it only shows that the way works: its results are labelled.
    #[serde(default)]
    pub demo: bool,
    /// Vectors to compare it with, a folder in the model's own; tried by `models check`.
    pub reference: Option<PathBuf>,
}

/// How a pipeline is sampled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Steps of a whole run.
    pub steps: usize,
    /// How much the prompt counts; 1 and less runs without the negative prompt.
    pub guidance: f32,
    /// What shall not be seen.
    #[serde(default)]
    pub negative_prompt: String,
}

impl Exemplar {
    pub(super) fn check(&self) -> Result<(), String> {
        self.canvas.check()?;
        check_wordless(&self.modes)?;
        if self.search_pixels < 4096 {
            return Err("search_pixels must be at least 4096".to_owned());
        }
        Ok(())
    }
}

impl Fill {
    pub(super) fn check(&self) -> Result<(), String> {
        self.canvas.check()?;
        check_wordless(&self.modes)?;
        let whites = [self.image.white, self.output_white];
        if !whites.iter().all(|white| white.is_finite() && *white > 0.0) {
            return Err("image.white and output_white must be above 0".to_owned());
        }
        if (self.mask.fill - self.mask.keep).abs() < f32::EPSILON {
            return Err("mask.fill and mask.keep must differ".to_owned());
        }
        Ok(())
    }
}

impl Inpaint {
    pub(super) fn check(&self) -> Result<(), String> {
        self.canvas.check()?;
        if !(1..=200).contains(&self.sampling.steps) {
            return Err("sampling.steps must be 1 to 200".to_owned());
        }
        if !(self.sampling.guidance.is_finite() && self.sampling.guidance >= 0.0) {
            return Err("sampling.guidance must not be below 0".to_owned());
        }
        if self.strength.is_empty() {
            return Err("strength must name at least one mode".to_owned());
        }
        if !self.strength.values().all(|strength| *strength > 0.0 && *strength <= 1.0) {
            return Err("each strength must be above 0 and at most 1".to_owned());
        }
        if let Some(words) = &self.vocabulary
            && (words.is_empty()
                || words.iter().any(|word| word.is_empty() || *word != word.to_lowercase()))
        {
            return Err("vocabulary must hold words in lower case".to_owned());
        }
        Ok(())
    }
}

impl Inpaint {
    /// Stable Diffusion's strength cuts steps off, and one at least must be left.
    pub(super) fn check_steps(&self) -> Result<(), String> {
        let steps = self.sampling.steps;
        let none =
            self.strength.iter().find(|(_, strength)| start_index(steps, **strength) >= steps);
        match none {
            Some((mode, strength)) => {
                Err(format!("strength.{mode} is {strength}, which leaves none of {steps} steps"))
            }
            None => Ok(()),
        }
    }

    /// A distilled model has neither guidance nor a negative prompt.
    pub(super) fn check_unguided(&self) -> Result<(), String> {
        if self.sampling.guidance > 1.0 {
            return Err("sampling.guidance must be 1 at most: this task has no guidance".to_owned());
        }
        if !self.sampling.negative_prompt.is_empty() {
            return Err(
                "sampling.negative_prompt must be empty: this task has no guidance".to_owned()
            );
        }
        Ok(())
    }
}

/// What knows no words can neither edit nor add.
fn check_wordless(modes: &BTreeSet<FixMode>) -> Result<(), String> {
    match modes.iter().find(|mode| mode.needs_words()) {
        Some(mode) => {
            Err(format!("modes holds {mode}, which takes a model that understands words"))
        }
        None if modes.is_empty() => Err("modes must name at least one".to_owned()),
        None => Ok(()),
    }
}
