//! diffusers' `scheduler_config.json`: every field is honored or refused by name.
//!
//! An absent field takes the default of its class in diffusers 0.42. `PNDMScheduler`, which most published Stable
//! Diffusion models name, runs as second-order DPM-Solver++ with the same betas, as
//! `DPMSolverMultistepScheduler.from_config` would create it; it needs a third of the steps.
//!
//! diffusers' Stable Diffusion pipelines replace any other `steps_offset` by 1. Here the file's value counts; published
//! models have 1.

mod error;
mod fields;

use std::path::Path;

use serde_json::{Map, Value};

pub use self::error::ConfigError;
use self::fields::Fields;
use super::error::DiffusionError;
use super::json;
use super::scheduler::betas;

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

/// How timesteps are spread over those of the training (table 2 of arXiv 2305.08891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly from the first to the last.
    Linspace,
    /// Multiples of a whole number, starting from the least noise.
    Leading,
    /// Even steps down from the most noise.
    Trailing,
}

/// The sigma after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalSigma {
    /// Zero: no noise remains.
    Zero,
    /// The smallest sigma of the training.
    Smallest,
}

/// How a second-order step of DPM-Solver++ weights the previous step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// At the midpoint.
    Midpoint,
    /// As in Heun's method.
    Heun,
}

/// A scheduler class, with its specific settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Solver {
    /// DDIM.
    Ddim {
        /// Whether the step below timestep 0 ends without noise.
        set_alpha_to_one: bool,
    },
    /// DPM-Solver++, multistep.
    DpmMultistep {
        /// The order, 1 or 2.
        order: usize,
        /// How second-order steps are corrected.
        correction: Correction,
        /// Whether the last step is first-order in runs of fewer than 15 steps.
        lower_order_final: bool,
        /// Whether the last step is always first-order.
        euler_at_final: bool,
        /// Whether sigmas are spread as in Karras et al. (arXiv 2206.00364).
        karras: bool,
        /// Whether the timesteps of such sigmas are rounded; with cosine betas they are truncated.
        round_timesteps: bool,
        /// The sigma after the last step.
        last: FinalSigma,
        /// Timesteps with a half log-SNR below this are skipped.
        lambda_min_clipped: f64,
    },
    /// Euler's method.
    Euler {
        /// `Some` if sigmas are spread as in Karras et al., with the smallest and largest sigma if the file gives them.
        karras: Option<(Option<f64>, Option<f64>)>,
        /// The sigma after the last step.
        last: FinalSigma,
    },
    /// Euler's method with fresh noise in each step.
    EulerAncestral,
    /// Latent consistency models.
    Lcm {
        /// The number of steps that the net was distilled from.
        original_steps: usize,
        /// The factor of timesteps in the boundary condition.
        timestep_scaling: f64,
    },
    /// Trajectory consistency distillation.
    Tcd {
        /// The number of steps that the net was distilled from.
        original_steps: usize,
    },
}

/// The settings of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// The betas of the training, one per timestep.
    pub betas: Vec<f32>,
    /// Whether betas are rescaled so that the last timestep is pure noise (arXiv 2305.08891).
    pub rescale_betas_zero_snr: bool,
    /// What the net predicts.
    pub prediction: Prediction,
    /// How timesteps are spread.
    pub spacing: Spacing,
    /// The offset of leading timesteps.
    pub steps_offset: usize,
    /// The scheduler class.
    pub solver: Solver,
}

/// Far more timesteps than any training has, and few enough for tables.
const MAX_TIMESTEPS: usize = 100_000;

/// The defaults of the classes' constructors, where they differ.
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
    /// If the file cannot be read, names no class, or [`Self::of_class`] refuses it.
    pub fn read(path: &Path) -> Result<Self, DiffusionError> {
        let object = json::read_object(path)?;
        let class = object
            .get("_class_name")
            .and_then(Value::as_str)
            .ok_or_else(|| DiffusionError::file(path, "`_class_name` is missing"))?;
        Ok(Self::of_class(class, &object)?)
    }

    /// Reads the settings of a diffusers class, such as `DDIMScheduler`, from the fields of a file.
    ///
    /// # Errors
    /// The class that is not implemented, or every field with an unsupported value.
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
    // DDIM is the only class that clips by default.
    if fields.flag("clip_sample", true) {
        let reason = if fields.has("clip_sample") {
            "clipping latents is not supported; set it to false"
        } else {
            "clipping latents is not supported, and it is DDIM's default: add the field with the value false"
        };
        fields.refuse(ConfigError::refused("clip_sample", &true, reason));
    }
    let set_alpha_to_one = fields.flag("set_alpha_to_one", true);
    common(fields, &DDIM_DEFAULTS, EVERY_PREDICTION, Solver::Ddim { set_alpha_to_one })
}

fn dpm_multistep(fields: &mut Fields<'_>) -> SchedulerConfig {
    let order = fields.count("solver_order", 2);
    if !(1..=2).contains(&order) {
        let reason = "only 1 and 2 are implemented";
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
            fields.refuse(ConfigError::refused(name, &sigma, "must be above 0"));
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
    // diffusers raises an error for `sample`.
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

/// Returns the betas of the training, one per timestep; empty if they are refused.
fn training_betas(fields: &mut Fields<'_>, defaults: &Defaults) -> Vec<f32> {
    let count = fields.count("num_train_timesteps", 1000);
    let start = fields.number("beta_start", defaults.beta_start);
    let end = fields.number("beta_end", defaults.beta_end);
    let schedule = beta_schedule(fields, defaults);
    let trained = fields.take("trained_betas");
    if count > MAX_TIMESTEPS {
        let reason = format!("must be at most {MAX_TIMESTEPS}");
        fields.refuse(ConfigError::refused("num_train_timesteps", &count, reason));
        return Vec::new();
    }
    let betas = match trained {
        Some(value) => {
            let Some(betas) = one_per_timestep(value, count) else {
                let expected = "a list of numbers, one per timestep";
                fields.refuse(ConfigError::malformed("trained_betas", value, expected));
                return Vec::new();
            };
            betas
        }
        None => betas::of_schedule(schedule, start, end, count),
    };
    if count < 2 || !betas.iter().all(|beta| *beta > 0.0 && *beta < 1.0) {
        let text = format!("{count} betas from {start} to {end} are not a noise schedule");
        fields.refuse(ConfigError::Steps(text));
    }
    betas
}

fn one_per_timestep(value: &Value, count: usize) -> Option<Vec<f32>> {
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
