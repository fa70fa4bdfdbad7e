//! diffusers' `scheduler_config.json`: every field is honoured, or refused by name.
//!
//! A field that is absent takes the default that its class has in diffusers 0.42. `PNDMScheduler`, which most
//! published Stable Diffusion folders name, runs as DPM-Solver++ of order 2 with the same betas, as
//! `DPMSolverMultistepScheduler.from_config` would make it: it needs a third of the steps.
//!
//! The file is what counts: diffusers' Stable Diffusion pipelines put 1 in the place of any other `steps_offset`,
//! which is not done here. Published folders have 1.

mod fields;

use std::path::Path;

use serde_json::{Map, Value};

use self::fields::Fields;
use super::error::DiffusionError;
use super::json;
use super::scheduler::betas;

/// Settings that cannot be honoured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The class is none of those implemented.
    #[error("the class {0} is not implemented")]
    Class(String),
    /// A field has a value that is not implemented.
    #[error("`{field}` is {value}: {reason}")]
    Refused {
        /// The field.
        field: String,
        /// Its value, as JSON.
        value: String,
        /// Why it is refused.
        reason: String,
    },
    /// A field has a value of the wrong kind.
    #[error("`{field}` is {value}, which is not {expected}")]
    Malformed {
        /// The field.
        field: String,
        /// Its value, as JSON.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// These settings have no schedule of so many steps.
    #[error("{0}")]
    Steps(String),
    /// Several of these.
    #[error("{}", joined(.0))]
    Several(Vec<Self>),
}

fn joined(errors: &[ConfigError]) -> String {
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    errors.join("; ")
}

impl ConfigError {
    fn refused(field: &str, value: &(impl ToString + ?Sized), reason: impl Into<String>) -> Self {
        Self::Refused { field: field.to_owned(), value: value.to_string(), reason: reason.into() }
    }

    fn malformed(field: &str, value: &Value, expected: &'static str) -> Self {
        const LONGEST: usize = 60;
        let mut text = value.to_string();
        if text.chars().count() > LONGEST {
            text = text.chars().take(LONGEST).chain("…".chars()).collect();
        }
        Self::Malformed { field: field.to_owned(), value: text, expected }
    }
}

/// What the net predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// The noise.
    Epsilon,
    /// The velocity, between noise and picture.
    Velocity,
    /// The picture without noise.
    Sample,
}

/// How the timesteps are spread over those of the training (table 2 of arXiv 2305.08891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// From the first to the last.
    Linspace,
    /// Multiples of a whole number, from the least noise on.
    Leading,
    /// Even steps down from the most noise.
    Trailing,
}

/// The sigma after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalSigma {
    /// No noise is left.
    Zero,
    /// The smallest of the training.
    Smallest,
}

/// How second-order steps of DPM-Solver++ weigh the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// At the midpoint.
    Midpoint,
    /// As Heun's method does.
    Heun,
}

/// A class of scheduler and what only it has.
#[derive(Clone, Debug, PartialEq)]
pub enum Solver {
    /// DDIM.
    Ddim {
        /// Whether the step past the first timestep of the training ends without noise.
        set_alpha_to_one: bool,
    },
    /// DPM-Solver++, multistep.
    DpmMultistep {
        /// 1 or 2.
        order: usize,
        /// How second-order steps are corrected.
        correction: Correction,
        /// Whether the last step of fewer than 15 is of first order.
        lower_order_final: bool,
        /// Whether the last step always is.
        euler_at_final: bool,
        /// Whether sigmas are spread as Karras et al. do.
        karras: bool,
        /// Whether timesteps found for such sigmas are rounded; with cosine betas they are cut.
        round_timesteps: bool,
        /// The sigma after the last step.
        last: FinalSigma,
        /// Timesteps whose half log-SNR is below this are left out.
        lambda_min_clipped: f64,
    },
    /// Euler's method.
    Euler {
        /// Whether sigmas are spread as Karras et al. do, and between which ends, where these are given.
        karras: Option<(Option<f64>, Option<f64>)>,
        /// The sigma after the last step.
        last: FinalSigma,
    },
    /// Euler's method with fresh noise at each step.
    EulerAncestral,
    /// Latent consistency models.
    Lcm {
        /// How many steps the net was distilled from.
        original_steps: usize,
        /// What timesteps are multiplied by at the boundary.
        timestep_scaling: f64,
    },
    /// Trajectory consistency distillation.
    Tcd {
        /// How many steps the net was distilled from.
        original_steps: usize,
    },
}

/// The settings of a scheduler, all of them honoured.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// The betas of the training, one a timestep.
    pub betas: Vec<f32>,
    /// Whether the betas are rescaled so that the last timestep is nothing but noise (arXiv 2305.08891).
    pub rescale_betas_zero_snr: bool,
    /// What the net predicts.
    pub prediction: Prediction,
    /// How timesteps are spread.
    pub spacing: Spacing,
    /// What leading timesteps are moved up by.
    pub steps_offset: usize,
    /// The class.
    pub solver: Solver,
}

/// Far more than any training's, and few enough to make tables of.
const MOST_TIMESTEPS: usize = 100_000;

/// What the classes' constructors default to where they differ.
struct Defaults {
    beta_start: f64,
    beta_end: f64,
    beta_schedule: betas::Schedule,
    spacing: Spacing,
}

const DEFAULTS: Defaults = Defaults {
    beta_start: 0.0001,
    beta_end: 0.02,
    beta_schedule: betas::Schedule::Linear,
    spacing: Spacing::Linspace,
};
const DDIM_DEFAULTS: Defaults = Defaults { spacing: Spacing::Leading, ..DEFAULTS };
const CONSISTENCY_DEFAULTS: Defaults = Defaults {
    beta_start: 0.00085,
    beta_end: 0.012,
    beta_schedule: betas::Schedule::ScaledLinear,
    spacing: Spacing::Leading,
};

const EVERY_PREDICTION: &[(&str, Prediction)] = &[
    ("epsilon", Prediction::Epsilon),
    ("v_prediction", Prediction::Velocity),
    ("sample", Prediction::Sample),
];

impl SchedulerConfig {
    /// Reads a `scheduler_config.json`.
    ///
    /// # Errors
    /// When the file cannot be read, names no class, or [`Self::of_class`] refuses it.
    pub fn read(path: &Path) -> Result<Self, DiffusionError> {
        let object = json::read_object(path)?;
        let class = object
            .get("_class_name")
            .and_then(Value::as_str)
            .ok_or_else(|| DiffusionError::file(path, "has no `_class_name`"))?;
        Ok(Self::of_class(class, &object)?)
    }

    /// The settings of a class of diffusers: `DDIMScheduler` and so on.
    ///
    /// # Errors
    /// When the class is not implemented, or a field's value is not; of several fields all are named.
    pub fn of_class(class: &str, object: &Map<String, Value>) -> Result<Self, ConfigError> {
        let mut fields = Fields::new(object);
        let config = match class {
            "DDIMScheduler" => ddim(&mut fields),
            "DPMSolverMultistepScheduler" | "PNDMScheduler" => dpm_multistep(&mut fields),
            "EulerDiscreteScheduler" => euler(&mut fields),
            "EulerAncestralDiscreteScheduler" => euler_ancestral(&mut fields),
            "LCMScheduler" => lcm(&mut fields),
            "TCDScheduler" => tcd(&mut fields),
            other => return Err(ConfigError::Class(other.to_owned())),
        };
        fields.finish()?;
        Ok(config)
    }
}

fn ddim(fields: &mut Fields<'_>) -> SchedulerConfig {
    // Alone among the classes, DDIM clips unless it is told not to.
    if fields.flag("clip_sample", true) {
        let reason = if fields.has("clip_sample") {
            "latents are not clipped; nets of latents are run with false"
        } else {
            "latents are not clipped; DDIM's default is true, so the field must be there"
        };
        fields.refuse(ConfigError::refused("clip_sample", &true, reason));
    }
    let set_alpha_to_one = fields.flag("set_alpha_to_one", true);
    common(fields, &DDIM_DEFAULTS, EVERY_PREDICTION, Solver::Ddim { set_alpha_to_one })
}

fn dpm_multistep(fields: &mut Fields<'_>) -> SchedulerConfig {
    let order = fields.count("solver_order", 2);
    if !(1..=2).contains(&order) {
        let reason = "orders 1 and 2 are implemented";
        fields.refuse(ConfigError::refused("solver_order", &order, reason));
    }
    let corrections = [("midpoint", Correction::Midpoint), ("heun", Correction::Heun)];
    let solver = Solver::DpmMultistep {
        order,
        correction: fields.word("solver_type", Correction::Midpoint, &corrections),
        lower_order_final: fields.flag("lower_order_final", true),
        euler_at_final: fields.flag("euler_at_final", false),
        karras: fields.flag("use_karras_sigmas", false),
        round_timesteps: beta_schedule(fields, &DEFAULTS) != betas::Schedule::SquaredCosine,
        last: final_sigma(fields),
        lambda_min_clipped: fields.number("lambda_min_clipped", f64::NEG_INFINITY),
    };
    common(fields, &DEFAULTS, EVERY_PREDICTION, solver)
}

fn euler(fields: &mut Fields<'_>) -> SchedulerConfig {
    let mut end = |name| {
        let sigma = fields.optional_number(name);
        if let Some(sigma) = sigma.filter(|sigma| !(sigma.is_finite() && *sigma > 0.0)) {
            fields.refuse(ConfigError::refused(name, &sigma, "it must be above 0"));
        }
        sigma
    };
    let ends = (end("sigma_min"), end("sigma_max"));
    let karras = fields.flag("use_karras_sigmas", false).then_some(ends);
    let predictions: Vec<_> =
        EVERY_PREDICTION.iter().copied().chain([("original_sample", Prediction::Sample)]).collect();
    let last = final_sigma(fields);
    common(fields, &DEFAULTS, &predictions, Solver::Euler { karras, last })
}

fn euler_ancestral(fields: &mut Fields<'_>) -> SchedulerConfig {
    // diffusers raises for `sample`.
    common(fields, &DEFAULTS, &EVERY_PREDICTION[..2], Solver::EulerAncestral)
}

fn lcm(fields: &mut Fields<'_>) -> SchedulerConfig {
    let original_steps = fields.count("original_inference_steps", 50);
    let timestep_scaling = fields.number("timestep_scaling", 10.0);
    let solver = Solver::Lcm { original_steps, timestep_scaling };
    common(fields, &CONSISTENCY_DEFAULTS, EVERY_PREDICTION, solver)
}

fn tcd(fields: &mut Fields<'_>) -> SchedulerConfig {
    let original_steps = fields.count("original_inference_steps", 50);
    common(fields, &CONSISTENCY_DEFAULTS, EVERY_PREDICTION, Solver::Tcd { original_steps })
}

fn common(
    fields: &mut Fields<'_>,
    defaults: &Defaults,
    predictions: &[(&str, Prediction)],
    solver: Solver,
) -> SchedulerConfig {
    let spacings = [
        ("linspace", Spacing::Linspace),
        ("leading", Spacing::Leading),
        ("trailing", Spacing::Trailing),
    ];
    SchedulerConfig {
        betas: training_betas(fields, defaults),
        rescale_betas_zero_snr: fields.flag("rescale_betas_zero_snr", false),
        prediction: fields.word("prediction_type", Prediction::Epsilon, predictions),
        spacing: fields.word("timestep_spacing", defaults.spacing, &spacings),
        steps_offset: fields.count("steps_offset", 0),
        solver,
    }
}

/// The betas of the training, one a timestep; no betas, where they are refused.
fn training_betas(fields: &mut Fields<'_>, defaults: &Defaults) -> Vec<f32> {
    let count = fields.count("num_train_timesteps", 1000);
    let start = fields.number("beta_start", defaults.beta_start);
    let end = fields.number("beta_end", defaults.beta_end);
    let schedule = beta_schedule(fields, defaults);
    let trained = fields.take("trained_betas");
    if count > MOST_TIMESTEPS {
        let reason = format!("no training has more than {MOST_TIMESTEPS}");
        fields.refuse(ConfigError::refused("num_train_timesteps", &count, reason));
        return Vec::new();
    }
    let betas = match trained {
        Some(value) => {
            let Some(betas) = one_a_timestep(value, count) else {
                let expected = "a list of numbers, one a timestep";
                fields.refuse(ConfigError::malformed("trained_betas", value, expected));
                return Vec::new();
            };
            betas
        }
        None => betas::of_schedule(schedule, start, end, count),
    };
    if count < 2 || !betas.iter().all(|beta| *beta > 0.0 && *beta < 1.0) {
        let text = format!("{count} betas from {start} to {end} are no noise schedule");
        fields.refuse(ConfigError::Steps(text));
    }
    betas
}

fn one_a_timestep(value: &Value, count: usize) -> Option<Vec<f32>> {
    let list = value.as_array().filter(|list| list.len() == count)?;
    list.iter().map(|beta| beta.as_f64().map(|beta| beta as f32)).collect()
}

fn beta_schedule(fields: &mut Fields<'_>, defaults: &Defaults) -> betas::Schedule {
    let schedules = [
        ("linear", betas::Schedule::Linear),
        ("scaled_linear", betas::Schedule::ScaledLinear),
        ("squaredcos_cap_v2", betas::Schedule::SquaredCosine),
    ];
    fields.word("beta_schedule", defaults.beta_schedule, &schedules)
}

fn final_sigma(fields: &mut Fields<'_>) -> FinalSigma {
    let words = [("zero", FinalSigma::Zero), ("sigma_min", FinalSigma::Smallest)];
    fields.word("final_sigmas_type", FinalSigma::Zero, &words)
}

#[cfg(test)]
mod tests;
