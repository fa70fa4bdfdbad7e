//! Creates the scheduler of a run from its settings.

use super::Scheduler;
use super::consistency::Consistency;
use super::ddim::Ddim;
use super::dpm_multistep::DpmMultistep;
use super::euler::Euler;
use super::unipc::UniPc;
use crate::diffusion::scheduler_config::{ConfigError, SchedulerConfig, Solver};

/// Creates the scheduler of a run of `steps` steps. `eta` is the noise that DDIM and TCD add, in 0..=1; the other
/// classes ignore it, as in diffusers. The run will start at step `first`, as [`start_index`](super::start_index)
/// computes it.
///
/// # Errors
/// [`ConfigError::Steps`] if there is no schedule with this number of steps, or a step from `first` on is impossible.
pub fn schedule(
    config: &SchedulerConfig,
    steps: usize,
    eta: f64,
    first: usize,
) -> Result<Box<dyn Scheduler + Send>, ConfigError> {
    let train_steps = config.betas.len();
    if steps == 0 || steps > train_steps {
        let text = format!("{steps} steps are not between 1 and the training's {train_steps}");
        return Err(ConfigError::Steps(text));
    }
    Ok(match &config.solver {
        Solver::Ddim { .. } => Box::new(Ddim::new(config, steps, eta, first)?),
        Solver::DpmMultistep { .. } => Box::new(DpmMultistep::new(config, steps)?),
        Solver::Euler { .. } | Solver::EulerAncestral => Box::new(Euler::new(config, steps)),
        Solver::UniPc { .. } => Box::new(UniPc::new(config, steps)?),
        Solver::Lcm { .. } | Solver::Tcd { .. } => {
            Box::new(Consistency::new(config, steps, eta, first)?)
        }
    })
}
