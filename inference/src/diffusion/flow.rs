//! The flow-matching scheduler of FLUX.2 \[klein\]: straight steps between sigmas from 1 to 0.

use std::path::Path;

use serde_json::{Map, Value};

use super::error::DiffusionError;
use super::json;
use super::scheduler_config::ConfigError;

/// Fields that `empirical_mu` replaces, so their values have no effect.
const WITHOUT_EFFECT: [&str; 4] =
    ["base_shift", "max_shift", "base_image_seq_len", "max_image_seq_len"];

/// How sigmas are shifted toward noise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shift {
    /// By the exponential of a number that grows with the picture.
    Exponential,
    /// By that number itself.
    Linear,
    Constant(f64),
}

/// The settings of `FlowMatchEulerDiscreteScheduler`. Every setting is honored or refused.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    shift: Shift,
    train_steps: f64,
}

impl FlowConfig {
    /// Reads the settings from a model's folder: `scheduler/scheduler_config.json` or `scheduler_config.json`.
    ///
    /// # Errors
    /// If both are missing, or a setting is not implemented.
    pub fn read(folder: &Path) -> Result<Self, DiffusionError> {
        let inner = folder.join("scheduler/scheduler_config.json");
        let file = if inner.is_file() { inner } else { folder.join("scheduler_config.json") };
        Ok(Self::from_fields(&json::read_object(&file)?)?)
    }

    /// Reads the settings from the fields of a file.
    ///
    /// # Errors
    /// The class or field that is not implemented.
    pub fn from_fields(fields: &Map<String, Value>) -> Result<Self, ConfigError> {
        let refused = |field: &str, value: &Value, reason: &str| ConfigError::Refused {
            field: field.to_owned(),
            value: value.to_string(),
            reason: reason.to_owned(),
        };
        let (mut is_dynamic, mut is_linear, mut constant, mut train_steps) =
            (false, false, 1.0, 1000.0);
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("_class_name", Value::String(class))
                    if class != "FlowMatchEulerDiscreteScheduler" =>
                {
                    return Err(ConfigError::Class(class.clone()));
                }
                ("use_dynamic_shifting", Value::Bool(flag)) => is_dynamic = *flag,
                ("time_shift_type", Value::String(kind)) if kind == "linear" => is_linear = true,
                ("time_shift_type", Value::String(kind)) if kind == "exponential" => {}
                ("shift", Value::Number(number)) => constant = number.as_f64().unwrap_or(1.0),
                ("num_train_timesteps", Value::Number(number)) => {
                    train_steps = number.as_f64().unwrap_or(1000.0);
                }
                (_, Value::Null | Value::Bool(false)) => {}
                (name, _) if name.starts_with('_') || WITHOUT_EFFECT.contains(&name) => {}
                (name, value) => return Err(refused(name, value, "not implemented")),
            }
        }
        for (name, number) in [("shift", constant), ("num_train_timesteps", train_steps)] {
            if !(number.is_finite() && number > 0.0) {
                return Err(refused(name, &Value::from(number), "must be above 0"));
            }
        }
        let shift = match (is_dynamic, is_linear) {
            (true, false) => Shift::Exponential,
            (true, true) => Shift::Linear,
            (false, _) => Shift::Constant(constant),
        };
        Ok(Self { shift, train_steps })
    }

    /// Returns the sigmas of a run of `steps` steps over `tokens` latents, and 0 after the last step.
    pub fn sigmas(&self, tokens: usize, steps: usize) -> Vec<f64> {
        let mu = empirical_mu(tokens, steps);
        let last = 1.0 / steps as f64;
        let mut sigmas: Vec<f64> = (0..steps)
            .map(|index| {
                let part = if steps == 1 { 0.0 } else { index as f64 / (steps - 1) as f64 };
                let unshifted = 1.0 + part * (last - 1.0);
                f64::from(self.shifted(unshifted, mu) as f32)
            })
            .collect();
        sigmas.push(0.0);
        sigmas
    }

    /// Returns the training timesteps of sigmas.
    pub fn timesteps(&self, sigmas: &[f64]) -> Vec<f64> {
        sigmas.iter().map(|sigma| sigma * self.train_steps).collect()
    }

    fn shifted(&self, sigma: f64, mu: f64) -> f64 {
        match self.shift {
            Shift::Exponential => mu.exp() / (mu.exp() + (1.0 / sigma - 1.0)),
            Shift::Linear => mu / (mu + (1.0 / sigma - 1.0)),
            Shift::Constant(shift) => shift * sigma / (1.0 + (shift - 1.0) * sigma),
        }
    }
}

/// Returns how far a picture of this many latents is shifted toward noise, as measured by the model's authors
/// (diffusers' `compute_empirical_mu`).
fn empirical_mu(tokens: usize, steps: usize) -> f64 {
    let (tokens, steps) = (tokens as f64, steps as f64);
    let at_200_steps = 0.000_169_27_f64.mul_add(tokens, 0.456_666_66);
    if tokens > 4300.0 {
        return at_200_steps;
    }
    let at_10_steps = 8.738_095_24e-5_f64.mul_add(tokens, 1.898_333_33);
    let slope = (at_200_steps - at_10_steps) / 190.0;
    slope.mul_add(steps, at_200_steps - 200.0 * slope)
}

/// Returns the first step of a run of this strength, as diffusers' FLUX pipelines compute it: they truncate the number
/// of skipped steps, while the Stable Diffusion pipelines truncate the number of remaining ones.
pub fn start_index(steps: usize, strength: f64) -> usize {
    let steps = steps as f64;
    (steps - (steps * strength).min(steps)).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(fields: &Value) -> Result<FlowConfig, ConfigError> {
        FlowConfig::from_fields(fields.as_object().unwrap())
    }

    #[test]
    fn sigmas_fall_from_one_to_zero() {
        let config = parse(&json!({"use_dynamic_shifting": true})).unwrap();
        let sigmas = config.sigmas(36, 4);
        assert_eq!(sigmas.len(), 5);
        assert!((sigmas[0] - 1.0).abs() < 1e-9 && sigmas[4].abs() < 1e-9);
        assert!(sigmas.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn the_number_of_skipped_steps_is_truncated() {
        assert_eq!(start_index(10, 0.75), 2);
        assert_eq!(start_index(10, 0.6), 4);
        assert_eq!(start_index(4, 1.0), 0);
    }

    #[test]
    fn unsupported_settings_are_refused_by_name() {
        for (field, value) in [
            ("invert_sigmas", json!(true)),
            ("shift_terminal", json!(0.02)),
            ("use_karras_sigmas", json!(true)),
            ("use_exponential_sigmas", json!(true)),
            ("use_beta_sigmas", json!(true)),
            ("stochastic_sampling", json!(true)),
            ("time_shift_type", json!("cubic")),
            ("shift", json!(0.0)),
            ("num_train_timesteps", json!(0)),
            ("something_new", json!(1)),
        ] {
            let error = parse(&json!({ field: value })).unwrap_err().to_string();
            assert!(error.contains(&format!("`{field}`")), "{error}");
        }
        let other = parse(&json!({"_class_name": "DDIMScheduler"})).unwrap_err();
        assert_eq!(other, ConfigError::Class("DDIMScheduler".to_owned()));
    }
}
