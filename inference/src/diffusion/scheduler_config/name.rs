//! The names of the implemented schedulers, and what each knows of diffusers' settings.

use std::fmt;

use serde::Deserialize;

/// A scheduler, as `sampling.scheduler` in `model.toml` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SchedulerName {
    #[serde(rename = "ddim")]
    Ddim,
    /// DPM-Solver++, multistep: DPM-Solver++ 2M if it is of second order.
    #[serde(rename = "dpm-solver++")]
    DpmSolver,
    /// Euler's method.
    #[serde(rename = "euler")]
    Euler,
    /// Euler's method with fresh noise in each step.
    #[serde(rename = "euler-ancestral")]
    EulerAncestral,
    /// Latent consistency models.
    #[serde(rename = "lcm")]
    Lcm,
    /// Trajectory consistency distillation.
    #[serde(rename = "tcd")]
    Tcd,
    /// UniPC, multistep.
    #[serde(rename = "unipc")]
    UniPc,
}

/// Fields that every class knows.
const COMMON: [&str; 9] = [
    "num_train_timesteps",
    "beta_start",
    "beta_end",
    "beta_schedule",
    "trained_betas",
    "rescale_betas_zero_snr",
    "prediction_type",
    "timestep_spacing",
    "steps_offset",
];
const THRESHOLDING: [&str; 3] = ["thresholding", "dynamic_thresholding_ratio", "sample_max_value"];
const CLIPPING: [&str; 2] = ["clip_sample", "clip_sample_range"];
const SIGMAS: [&str; 4] =
    ["use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas", "final_sigmas_type"];
const SOLVERS: [&str; 7] = [
    "solver_order",
    "solver_type",
    "lower_order_final",
    "use_flow_sigmas",
    "flow_shift",
    "use_dynamic_shifting",
    "time_shift_type",
];
const DISTILLED: [&str; 3] = ["original_inference_steps", "set_alpha_to_one", "timestep_scaling"];

impl SchedulerName {
    /// Every scheduler, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Ddim,
        Self::DpmSolver,
        Self::Euler,
        Self::EulerAncestral,
        Self::Lcm,
        Self::Tcd,
        Self::UniPc,
    ];

    /// Returns the name in `model.toml`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ddim => "ddim",
            Self::DpmSolver => "dpm-solver++",
            Self::Euler => "euler",
            Self::EulerAncestral => "euler-ancestral",
            Self::Lcm => "lcm",
            Self::Tcd => "tcd",
            Self::UniPc => "unipc",
        }
    }

    /// Returns the class in diffusers.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Ddim => "DDIMScheduler",
            Self::DpmSolver => "DPMSolverMultistepScheduler",
            Self::Euler => "EulerDiscreteScheduler",
            Self::EulerAncestral => "EulerAncestralDiscreteScheduler",
            Self::Lcm => "LCMScheduler",
            Self::Tcd => "TCDScheduler",
            Self::UniPc => "UniPCMultistepScheduler",
        }
    }

    /// Returns the scheduler of a diffusers class; `None` if the class is not implemented.
    pub(super) fn of_class(class: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.class() == class)
    }

    /// Returns whether diffusers' class has this setting. A setting that it has may still be refused.
    pub(super) fn knows(self, field: &str) -> bool {
        let own: &[&[&str]] = match self {
            Self::Ddim => &[&THRESHOLDING, &CLIPPING, &["set_alpha_to_one"]],
            Self::DpmSolver => &[
                &THRESHOLDING,
                &SIGMAS,
                &SOLVERS,
                &["algorithm_type", "euler_at_final", "lambda_min_clipped"],
                &["use_lu_lambdas", "variance_type"],
            ],
            Self::Euler => {
                &[&SIGMAS, &["sigma_min", "sigma_max", "interpolation_type", "timestep_type"]]
            }
            Self::EulerAncestral => &[],
            Self::Lcm | Self::Tcd => &[&THRESHOLDING, &CLIPPING, &DISTILLED],
            Self::UniPc => &[
                &THRESHOLDING,
                &SIGMAS,
                &SOLVERS,
                &["predict_x0", "disable_corrector", "solver_p"],
                &["sigma_min", "sigma_max", "shift_terminal"],
            ],
        };
        COMMON.contains(&field) || own.iter().any(|fields| fields.contains(&field))
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns whether another scheduler can sample a net that was published with this class. They all describe the same
/// training, by the same fields (diffusers' `KarrasDiffusionSchedulers`, without the EDM scheduler, which scales
/// differently).
pub(super) fn is_replaceable(class: &str) -> bool {
    const NOT_IMPLEMENTED: [&str; 9] = [
        "PNDMScheduler",
        "DDPMScheduler",
        "LMSDiscreteScheduler",
        "HeunDiscreteScheduler",
        "DPMSolverSinglestepScheduler",
        "DPMSolverSDEScheduler",
        "KDPM2DiscreteScheduler",
        "KDPM2AncestralDiscreteScheduler",
        "DEISMultistepScheduler",
    ];
    NOT_IMPLEMENTED.contains(&class) || SchedulerName::of_class(class).is_some()
}
