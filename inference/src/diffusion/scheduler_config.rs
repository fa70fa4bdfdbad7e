//! diffusers' `scheduler_config.json`: every field is honored or refused by name.
//!
//! An absent field takes the default of its class in diffusers 0.42. `PNDMScheduler`, which most published Stable
//! Diffusion models name, runs as second-order DPM-Solver++ with the same betas, as
//! `DPMSolverMultistepScheduler.from_config` would create it; it needs a third of the steps. A manifest may state
//! another scheduler for a model ([`SchedulerName`]): the weights do not depend on it.
//!
//! diffusers' Stable Diffusion pipelines replace any other `steps_offset` by 1. Here the file's value counts; published
//! models have 1.

mod error;
mod fields;
mod model_scheduler;
mod name;
mod solver;

use serde_json::{Map, Value, json};

pub use self::error::ConfigError;
use self::fields::Fields;
pub use self::model_scheduler::ModelScheduler;
pub use self::name::SchedulerName;
pub use self::solver::{Correction, FinalSigma, Prediction, Solver, Spacing, StepFunction};
use super::scheduler::betas;

#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// The betas of the training, one per timestep.
    pub betas: Vec<f32>,
    /// Whether betas are rescaled so that the last timestep is pure noise (arXiv 2305.08891).
    pub rescale_betas_zero_snr: bool,
    pub prediction: Prediction,
    pub spacing: Spacing,
    /// The offset of leading timesteps.
    pub steps_offset: usize,
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
    /// Reads the settings of a diffusers class, such as `DDIMScheduler`, from the fields of a file.
    ///
    /// # Errors
    /// The class that is not implemented, or every field with an unsupported value.
    pub fn of_class(class: &str, object: &Map<String, Value>) -> Result<Self, ConfigError> {
        match SchedulerName::of_class(class) {
            Some(name) => Self::of_name(name, object),
            None if class == PNDM => Self::of_name(SchedulerName::DpmSolver, object),
            None => Err(ConfigError::Class(class.to_owned())),
        }
    }

    /// Reads the settings of another scheduler from the file of class `class`, as diffusers' `from_config` does: fields
    /// that both know keep their values, all others take the defaults of the new class. Two differences: if the file
    /// omits the betas, they are the betas of its own class, because the net was trained with them; and DDIM only clips
    /// if the file says so.
    ///
    /// # Errors
    /// If `class` is not one of those that can be replaced, and every field with an unsupported value.
    pub fn replaced(
        class: &str,
        object: &Map<String, Value>,
        name: SchedulerName,
    ) -> Result<Self, ConfigError> {
        if !name::is_replaceable(class) {
            return Err(ConfigError::NotReplaceable(class.to_owned()));
        }
        let defaults: Vec<_> = object
            .get("_use_default_values")
            .and_then(Value::as_array)
            .map(|fields| fields.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let is_kept = |field: &String| name.knows(field) && !defaults.contains(&field.as_str());
        let kept = object.iter().filter(|(field, _)| is_kept(field));
        let mut kept: Map<_, _> =
            kept.map(|(field, value)| (field.clone(), value.clone())).collect();
        let trained = defaults_of(SchedulerName::of_class(class));
        for (field, value) in [
            ("beta_start", json!(trained.beta_start)),
            ("beta_end", json!(trained.beta_end)),
            ("beta_schedule", json!(trained.beta_schedule.as_str())),
        ] {
            kept.entry(field).or_insert(value);
        }
        if name == SchedulerName::Ddim {
            kept.entry("clip_sample").or_insert(json!(false));
        }
        Self::of_name(name, &kept)
    }

    fn of_name(name: SchedulerName, object: &Map<String, Value>) -> Result<Self, ConfigError> {
        let mut fields = Fields::new(object);
        let config = match name {
            SchedulerName::Ddim => ddim(&mut fields),
            SchedulerName::DpmSolver => dpm_multistep(&mut fields),
            SchedulerName::Euler => euler(&mut fields),
            SchedulerName::EulerAncestral => euler_ancestral(&mut fields),
            SchedulerName::Lcm => lcm(&mut fields),
            SchedulerName::Tcd => tcd(&mut fields),
            SchedulerName::UniPc => unipc(&mut fields),
        };
        fields.finish()?;
        Ok(config)
    }
}

/// The class that runs as DPM-Solver++.
const PNDM: &str = "PNDMScheduler";

const fn defaults_of(name: Option<SchedulerName>) -> &'static Defaults {
    match name {
        Some(SchedulerName::Ddim) => &DDIM_DEFAULTS,
        Some(SchedulerName::Lcm | SchedulerName::Tcd) => &CONSISTENCY_DEFAULTS,
        _ => &DEFAULTS,
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

fn unipc(fields: &mut Fields<'_>) -> SchedulerConfig {
    let order = fields.count("solver_order", 2);
    if !(1..=3).contains(&order) {
        let reason = "only 1, 2 and 3 are implemented";
        fields.refuse(ConfigError::refused("solver_order", &order, reason));
    }
    if !fields.flag("predict_x0", true) {
        let reason = "only the variant that predicts the picture is implemented; set it to true";
        fields.refuse(ConfigError::refused("predict_x0", &false, reason));
    }
    // diffusers replaces the types of other solvers by bh2.
    let functions = [
        ("bh1", StepFunction::Bh1),
        ("bh2", StepFunction::Bh2),
        ("midpoint", StepFunction::Bh2),
        ("heun", StepFunction::Bh2),
        ("logrho", StepFunction::Bh2),
    ];
    let last = final_sigma(fields);
    let lower_order_final = fields.flag("lower_order_final", true);
    if !lower_order_final && last == FinalSigma::Zero && order > 1 {
        let reason = "a last step to zero noise is of order 1; set it to true";
        fields.refuse(ConfigError::refused("lower_order_final", &false, reason));
    }
    let solver = Solver::UniPc {
        order,
        function: fields.word("solver_type", StepFunction::Bh2, &functions),
        lower_order_final,
        karras: fields.flag("use_karras_sigmas", false),
        last,
    };
    common(fields, &DEFAULTS, EVERY_PREDICTION, solver)
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
    let schedules = betas::Schedule::ALL.map(|schedule| (schedule.as_str(), schedule));
    fields.word("beta_schedule", defaults.beta_schedule, &schedules)
}

fn final_sigma(fields: &mut Fields<'_>) -> FinalSigma {
    let words = [("zero", FinalSigma::Zero), ("sigma_min", FinalSigma::Smallest)];
    fields.word("final_sigmas_type", FinalSigma::Zero, &words)
}

#[cfg(test)]
mod tests;
