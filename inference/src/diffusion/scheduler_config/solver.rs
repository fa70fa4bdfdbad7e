//! The values of scheduler settings.

use super::name::SchedulerName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// The noise.
    Epsilon,
    /// The velocity, between noise and picture.
    Velocity,
    /// The picture without noise.
    Sample,
}

/// How timesteps are spread over the training's timesteps (table 2 of arXiv 2305.08891).
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
    Midpoint,
    /// As in Heun's method.
    Heun,
}

/// The function B(h) of a step of UniPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFunction {
    /// B₁(h) = h.
    Bh1,
    /// B₂(h) = eʰ - 1.
    Bh2,
}

/// A scheduler class, with its specific settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Solver {
    Ddim {
        /// Whether the step below timestep 0 ends without noise.
        set_alpha_to_one: bool,
    },
    /// DPM-Solver++, multistep.
    DpmMultistep {
        /// The order, 1 or 2.
        order: usize,
        correction: Correction,
        /// Whether the last step is first-order in runs of fewer than 15 steps.
        lower_order_final: bool,
        /// Whether the last step is always first-order.
        euler_at_final: bool,
        /// Whether sigmas are spread as in Karras et al. (arXiv 2206.00364).
        karras: bool,
        /// Whether the timesteps of such sigmas are rounded; with cosine betas they are truncated.
        round_timesteps: bool,
        last: FinalSigma,
        /// Timesteps with a half log-SNR below this are skipped.
        lambda_min_clipped: f64,
    },
    Euler {
        /// `Some` if sigmas are spread as in Karras et al., with the smallest and largest sigma if the file gives them.
        karras: Option<(Option<f64>, Option<f64>)>,
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
    /// UniPC, multistep.
    UniPc {
        /// Maximum order of a step, 1 to 3.
        order: usize,
        function: StepFunction,
        /// Whether the order falls to 1 in the last steps.
        lower_order_final: bool,
        /// Whether sigmas are spread as in Karras et al. (arXiv 2206.00364).
        karras: bool,
        last: FinalSigma,
    },
}

impl Solver {
    /// Returns the name that `sampling.scheduler` has for the class.
    pub const fn name(&self) -> SchedulerName {
        match self {
            Self::Ddim { .. } => SchedulerName::Ddim,
            Self::DpmMultistep { .. } => SchedulerName::DpmSolver,
            Self::Euler { .. } => SchedulerName::Euler,
            Self::EulerAncestral => SchedulerName::EulerAncestral,
            Self::Lcm { .. } => SchedulerName::Lcm,
            Self::Tcd { .. } => SchedulerName::Tcd,
            Self::UniPc { .. } => SchedulerName::UniPc,
        }
    }
}
