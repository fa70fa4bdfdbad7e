//! The contracts of models that repaint part of a picture: exemplar fills, fills and text-guided pipelines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use retouch_catalog::FixMode;
use retouch_pixels::patch::Canvas;
use serde::Deserialize;

use super::contract::{Element, Output};
use crate::diffusion::SchedulerName;
use crate::diffusion::scheduler::start_index;

/// A fill without weights, from the picture itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exemplar {
    pub canvas: Canvas,
    pub modes: BTreeSet<FixMode>,
    /// Maximum number of pixels to search; larger surroundings are searched at half size.
    pub search_pixels: usize,
}

/// A net that fills a hole without a prompt: takes a picture and a mask and returns the picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    pub canvas: Canvas,
    pub modes: BTreeSet<FixMode>,
    /// The picture input: `[1, 3, height, width]`, R, G, B.
    pub image: FillImage,
    /// The mask input: `[1, 1, height, width]`, with the element type of the picture.
    pub mask: FillMask,
    /// The filled picture: `[1, 3, height, width]`.
    pub output: Output,
    /// The output value of white: 255 or 1.
    pub output_white: f32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillImage {
    /// The tensor's name in the graph.
    pub name: String,
    /// The element type of the picture, the mask and the output.
    pub element: Element,
    /// The input value of white: 255 or 1.
    pub white: f32,
    /// Whether the pixels to fill are set to black first.
    #[serde(default)]
    pub blanks_hole: bool,
}

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

/// A text-guided pipeline of several nets: a folder in the layout of diffusers and optimum. The inputs and outputs are
/// read from the graphs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inpaint {
    pub canvas: Canvas,
    pub sampling: Sampling,
    /// The fix modes that it supports, with their strength: the share of the old content to discard, above 0 and at
    /// most 1.
    pub strength: BTreeMap<FixMode, f64>,
    /// The known words, in lower case. A prompt with any other word is refused; `None` accepts all.
    pub vocabulary: Option<Vec<String>>,
    /// Whether the model is only a demo, whose results are labeled as such.
    #[serde(default)]
    pub demo: bool,
    /// The subfolder of reference vectors that `models check` compares it with.
    pub reference: Option<PathBuf>,
    /// What FLUX.2 \[klein\] sees in its reference picture where the hole is, by fix mode.
    #[serde(default)]
    reference_image: BTreeMap<FixMode, ReferenceHole>,
}

/// The content of a pipeline's reference picture inside the hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceHole {
    /// The picture itself, as in diffusers.
    Keep,
    /// Mid-gray.
    Gray,
    /// The surroundings, continued into the hole by the fill without weights.
    Fill,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Steps of a full run, at strength 1.
    pub steps: usize,
    /// The weight of the prompt; at 1 or less the negative prompt is not run.
    pub guidance: f32,
    #[serde(default)]
    pub negative_prompt: String,
    /// The scheduler to use instead of the scheduler in the model's folder.
    pub scheduler: Option<SchedulerName>,
}

impl Exemplar {
    pub(super) fn check(&self) -> Result<(), String> {
        self.canvas.check()?;
        check_modes_without_prompt(&self.modes)?;
        if self.search_pixels < 4096 {
            return Err("search_pixels must be at least 4096".to_owned());
        }
        Ok(())
    }
}

impl Fill {
    pub(super) fn check(&self) -> Result<(), String> {
        self.canvas.check()?;
        check_modes_without_prompt(&self.modes)?;
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
            return Err("sampling.guidance must be 0 or more".to_owned());
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
            return Err("vocabulary must hold at least one word, all in lower case".to_owned());
        }
        Ok(())
    }
}

impl Inpaint {
    /// Returns the content of the reference picture inside the hole.
    ///
    /// Prompts that edit, add to, restore or enhance a thing may refer to what is under the mask ("make it blue"), so
    /// the reference shows it unless the manifest says otherwise. Removal names only what must go, and a net that sees
    /// it in its reference may paint it again.
    pub fn reference_hole(&self, mode: FixMode) -> ReferenceHole {
        let default = match mode {
            FixMode::Remove => ReferenceHole::Fill,
            FixMode::Restore | FixMode::Enhance | FixMode::Edit | FixMode::Add => {
                ReferenceHole::Keep
            }
        };
        self.reference_image.get(&mode).copied().unwrap_or(default)
    }

    /// Checks that no reference picture is described for a task that has none.
    pub(super) fn check_no_reference_image(&self) -> Result<(), String> {
        if self.reference_image.is_empty() {
            Ok(())
        } else {
            Err("reference_image is for task \"flux2-klein\": Stable Diffusion sees no reference picture".to_owned())
        }
    }

    /// Checks that a reference picture is described only for modes that the model serves, and that no scheduler is
    /// stated for a task that has its own.
    pub(super) fn check_klein(&self) -> Result<(), String> {
        if let Some(mode) =
            self.reference_image.keys().find(|mode| !self.strength.contains_key(mode))
        {
            return Err(format!(
                "reference_image.{mode} is stated, but strength.{mode} is not, so the mode is not served"
            ));
        }
        match self.sampling.scheduler {
            Some(name) => Err(format!(
                "sampling.scheduler is \"{name}\", but this task has its own scheduler (flow matching); remove the field"
            )),
            None => Ok(()),
        }
    }

    /// Checks that each strength leaves at least one step: in Stable Diffusion a lower strength skips steps.
    pub(super) fn check_steps(&self) -> Result<(), String> {
        let steps = self.sampling.steps;
        let none =
            self.strength.iter().find(|(_, strength)| start_index(steps, **strength) >= steps);
        match none {
            Some((mode, strength)) => {
                Err(format!("strength.{mode} is {strength}, which leaves no step of {steps}"))
            }
            None => Ok(()),
        }
    }

    /// Checks that a distilled model is given no guidance and no negative prompt.
    pub(super) fn check_unguided(&self) -> Result<(), String> {
        if self.sampling.guidance > 1.0 {
            return Err("sampling.guidance must be at most 1: this task has no guidance".to_owned());
        }
        if !self.sampling.negative_prompt.is_empty() {
            return Err(
                "sampling.negative_prompt must be empty: this task has no guidance".to_owned()
            );
        }
        Ok(())
    }
}

/// Checks the modes of a model that takes no prompt.
fn check_modes_without_prompt(modes: &BTreeSet<FixMode>) -> Result<(), String> {
    match modes.iter().find(|mode| mode.needs_words()) {
        Some(mode) => Err(format!("modes contains {mode}, which requires a text-guided model")),
        None if modes.is_empty() => Err("modes must name at least one mode".to_owned()),
        None => Ok(()),
    }
}
