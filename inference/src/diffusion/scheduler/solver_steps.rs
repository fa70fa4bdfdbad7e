//! The steps of multistep solvers: their timesteps, sigmas, and signal-to-noise ratios.

use super::{betas, spacing};
use crate::diffusion::scheduler_config::{ConfigError, FinalSigma, SchedulerConfig, Spacing};

#[derive(Clone, Debug)]
pub(super) struct SolverSteps {
    /// The timesteps, whole numbers.
    pub(super) timesteps: Vec<f64>,
    /// The sigmas of the timesteps, and the one after the last step.
    pub(super) sigmas: Vec<f64>,
}

/// How a solver spreads its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Whether sigmas are spread as in Karras et al. (arXiv 2206.00364).
    pub(super) karras: bool,
    /// Whether the timesteps of such sigmas are rounded; otherwise they are truncated.
    pub(super) round_timesteps: bool,
    pub(super) last: FinalSigma,
    /// Timesteps with a half log-SNR below this are skipped.
    pub(super) lambda_min_clipped: f64,
}

impl SolverSteps {
    pub(super) fn new(
        config: &SchedulerConfig,
        steps: usize,
        spread: Spread,
    ) -> Result<Self, ConfigError> {
        let table = betas::sigmas(&config.betas, config.rescale_betas_zero_snr);
        let (timesteps, mut sigmas): (Vec<f64>, Vec<f64>) = if spread.karras {
            let sigmas = spacing::karras(table[0], table[table.len() - 1], steps);
            let timesteps = sigmas.iter().map(|sigma| {
                let timestep = spacing::timestep_of(*sigma, &table);
                if spread.round_timesteps { timestep.round_ties_even() } else { timestep.trunc() }
            });
            (timesteps.collect(), sigmas)
        } else {
            let timesteps = spaced(config, &table, spread.lambda_min_clipped, steps)?;
            let sigmas = timesteps.iter().map(|t| spacing::interpolate(*t, &table)).collect();
            (timesteps, sigmas)
        };
        sigmas.push(if spread.last == FinalSigma::Zero { 0.0 } else { table[0] });
        let sigmas = sigmas.into_iter().map(spacing::rounded).collect();
        Ok(Self { timesteps, sigmas })
    }

    /// Returns signal, noise and half log-SNR before step `index`.
    pub(super) fn at(&self, index: usize) -> (f64, f64, f64) {
        let sigma = self.sigmas[index];
        let signal = 1.0 / sigma.hypot(1.0);
        (signal, sigma * signal, -sigma.ln())
    }

    /// Returns by how much step `index` raises the half log-SNR; infinite if no noise remains.
    pub(super) fn length(&self, index: usize) -> f64 {
        self.at(index + 1).2 - self.at(index).2
    }

    /// Returns whether step `index` changes nothing: the spacing has already reached the last sigma. Dividing by its
    /// length would divide by zero.
    pub(super) fn is_empty(&self, index: usize) -> bool {
        self.length(index).abs() < f64::EPSILON
    }
}

/// Returns the timesteps of a run without Karras sigmas.
fn spaced(
    config: &SchedulerConfig,
    table: &[f64],
    lambda_min_clipped: f64,
    steps: usize,
) -> Result<Vec<f64>, ConfigError> {
    let train_steps = table.len();
    let clipped = table.iter().filter(|sigma| -sigma.ln() < lambda_min_clipped).count();
    let last = train_steps - clipped;
    // Spaces one extra point and drops it, so the steps end above timestep 0.
    let points = steps + 1;
    if last < points {
        let text = format!("{steps} steps are too many for {last} timesteps");
        return Err(ConfigError::Steps(text));
    }
    let mut timesteps = match config.spacing {
        Spacing::Linspace => spacing::linspace((last - 1) as f64, points),
        Spacing::Leading => spacing::leading(last / points, points, config.steps_offset),
        Spacing::Trailing => {
            spacing::trailing(last as f64, train_steps as f64 / steps as f64, steps)
        }
    };
    timesteps.truncate(steps);
    Ok(timesteps.into_iter().map(f64::round_ties_even).collect())
}
