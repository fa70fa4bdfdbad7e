//! Schedulers of distilled nets, which need only a few steps: LCM (arXiv 2310.04378) and TCD (arXiv 2402.19159).
//!
//! Their timesteps are a selection of the distillation's timesteps. As in diffusers, `timestep_spacing`, `steps_offset`
//! and `set_alpha_to_one` have no effect: the last step ends at the last timestep, never below it.

use ndarray::Array4;

use super::Scheduler;
use super::alphas::Alphas;
use super::mix::{Mix, sum};
use crate::diffusion::scheduler_config::{ConfigError, Prediction, SchedulerConfig, Solver};

pub(super) struct Consistency {
    alphas: Alphas,
    timesteps: Vec<f64>,
    prediction: Prediction,
    kind: Kind,
}

enum Kind {
    Lcm { timestep_scaling: f64 },
    Tcd { eta: f64 },
}

impl Consistency {
    pub(super) fn new(
        config: &SchedulerConfig,
        steps: usize,
        eta: f64,
        first: usize,
    ) -> Result<Self, ConfigError> {
        let alphas = Alphas::new(config);
        let (kind, original_steps) = match config.solver {
            Solver::Lcm { original_steps, timestep_scaling } => {
                (Kind::Lcm { timestep_scaling }, original_steps)
            }
            Solver::Tcd { original_steps } => (Kind::Tcd { eta }, original_steps),
            _ => return Err(ConfigError::Steps("not a consistency scheduler".to_owned())),
        };
        let train_steps = config.betas.len();
        if steps > original_steps || original_steps > train_steps {
            let text = format!(
                "{steps} steps must be at most `original_inference_steps` = {original_steps}, which must be at most \
                 the training's {train_steps}"
            );
            return Err(ConfigError::Steps(text));
        }
        let stride = train_steps / original_steps;
        let timesteps: Vec<f64> = (0..steps)
            .map(|index| {
                let skipped = (index as f64 * (original_steps as f64 / steps as f64)).floor();
                (original_steps - skipped as usize) * stride - 1
            })
            .map(|timestep| timestep as f64)
            .collect();
        alphas.check(&timesteps, first, config.prediction)?;
        Ok(Self { alphas, timesteps, prediction: config.prediction, kind })
    }

    fn is_last(&self, index: usize) -> bool {
        index + 1 == self.timesteps.len()
    }
}

impl Scheduler for Consistency {
    fn timesteps(&self) -> &[f64] {
        &self.timesteps
    }

    fn noise_mix(&self, index: usize) -> (f64, f64) {
        self.alphas.noise_mix(self.timesteps[index])
    }

    fn draws_noise(&self, index: usize) -> bool {
        let stays_noisy = match self.kind {
            Kind::Lcm { .. } => true,
            Kind::Tcd { eta } => eta > 0.0,
        };
        stays_noisy && !self.is_last(index)
    }

    fn step(
        &mut self,
        index: usize,
        latents: &Array4<f32>,
        predicted: &Array4<f32>,
        noise: Option<&Array4<f32>>,
    ) -> Array4<f32> {
        let timestep = self.timesteps[index];
        let alpha = self.alphas.at(timestep);
        let picture = Mix::picture(self.prediction, alpha);
        let next = self.timesteps.get(index + 1).copied();
        let (mix, fresh) = match self.kind {
            Kind::Lcm { timestep_scaling } => {
                // Equation 9: at timestep 0 the prediction has weight 0.
                const SIGMA_DATA: f64 = 0.5;
                let scaled = timestep * timestep_scaling;
                let power = scaled * scaled + SIGMA_DATA * SIGMA_DATA;
                let kept = Mix { latents: SIGMA_DATA * SIGMA_DATA / power, predicted: 0.0 };
                let denoised = picture.times(scaled / power.sqrt()).plus(kept);
                match next.map(|next| self.alphas.at(next)) {
                    Some(next) => (denoised.times(next.sqrt()), (1.0 - next).sqrt()),
                    None => (denoised, 0.0),
                }
            }
            Kind::Tcd { eta } => {
                let next = next.unwrap_or(0.0);
                // torch multiplies in 32 bits here.
                let intermediate = f64::from(((1.0 - eta) as f32 * next as f32).floor());
                let (between, next) = (self.alphas.at(intermediate), self.alphas.at(next));
                let denoised = picture
                    .times(between.sqrt())
                    .plus(Mix::noise(self.prediction, alpha).times((1.0 - between).sqrt()));
                if self.draws_noise(index) {
                    let left = next / between;
                    (denoised.times(left.sqrt()), (1.0 - left).max(0.0).sqrt())
                } else {
                    (denoised, 0.0)
                }
            }
        };
        let mut terms = vec![(mix.predicted, predicted.view())];
        terms.extend(noise.map(|noise| (fresh, noise.view())));
        sum((mix.latents, latents), &terms)
    }
}
