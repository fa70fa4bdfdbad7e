//! Reads the fields of a `scheduler_config.json` and keeps track of those that were not read.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::error::ConfigError;

/// Fields that must be neutral if a class does not read them: the neutral value, and why any other is refused.
fn neutral_fields() -> [(&'static str, Value, &'static str); 23] {
    const NO_CLIP: &str = "clipping latents is not supported";
    const NO_SIGMAS: &str = "not implemented for this class";
    const NO_FLOW: &str = "flow matching is only implemented for FLUX";
    const NO_DPM: &str = "only DPM-Solver++ and UniPC read this field";
    const NO_UNIPC: &str = "not implemented for UniPC, and not read by other classes";
    const NO_EULER: &str = "not implemented for Euler, and not read by other classes";
    [
        ("clip_sample", json!(false), NO_CLIP),
        ("thresholding", json!(false), NO_CLIP),
        ("use_karras_sigmas", json!(false), NO_SIGMAS),
        ("use_exponential_sigmas", json!(false), NO_SIGMAS),
        ("use_beta_sigmas", json!(false), NO_SIGMAS),
        ("use_lu_lambdas", json!(false), NO_SIGMAS),
        ("use_flow_sigmas", json!(false), NO_FLOW),
        ("flow_shift", json!(1.0), NO_FLOW),
        ("use_dynamic_shifting", json!(false), NO_FLOW),
        ("time_shift_type", json!("exponential"), NO_FLOW),
        ("variance_type", Value::Null, "nets that predict their variance are not supported"),
        ("algorithm_type", json!("dpmsolver++"), "only dpmsolver++ is implemented"),
        ("solver_order", json!(2), NO_DPM),
        ("solver_type", json!("midpoint"), NO_DPM),
        ("lower_order_final", json!(true), NO_DPM),
        ("euler_at_final", json!(false), NO_DPM),
        ("lambda_min_clipped", json!("-Infinity"), NO_DPM),
        ("final_sigmas_type", json!("zero"), "only DPM-Solver++, Euler and UniPC read this field"),
        ("interpolation_type", json!("linear"), NO_EULER),
        ("timestep_type", json!("discrete"), NO_EULER),
        ("predict_x0", json!(true), NO_UNIPC),
        ("disable_corrector", json!([]), NO_UNIPC),
        ("original_inference_steps", json!(50), "only LCM and TCD read this field"),
    ]
}

/// Fields without effect: they configure something that is off, or diffusers uses them in no formula of these classes.
const WITHOUT_EFFECT: [&str; 6] = [
    // Without effect if `clip_sample` and `thresholding` are off.
    "clip_sample_range",
    "dynamic_thresholding_ratio",
    "sample_max_value",
    // Configures PNDM's warm-up, which DPM-Solver++ does not have.
    "skip_prk_steps",
    // Only DDIM reads it.
    "set_alpha_to_one",
    // TCD inherits the field from LCM and does not use it.
    "timestep_scaling",
];

/// The fields of one file. Errors are collected until [`Self::finish`], so that all of them are reported at once; until
/// then an invalid field counts as its default.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'static str>,
    errors: Vec<ConfigError>,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(map: &'a Map<String, Value>) -> Self {
        Self { map, taken: BTreeSet::new(), errors: Vec::new() }
    }

    /// Adds an error, unless it has already been added.
    pub(super) fn refuse(&mut self, error: ConfigError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Takes a field's value; `None` if it is absent or null.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.taken.insert(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Takes a flag; null is false, as in Python.
    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        self.taken.insert(name);
        match self.map.get(name) {
            None => default,
            Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.refuse(ConfigError::malformed(name, other, "true or false"));
                default
            }
        }
    }

    pub(super) fn optional_number(&mut self, name: &'static str) -> Option<f64> {
        let value = self.take(name)?;
        let found = number(value);
        if found.is_none() {
            self.refuse(ConfigError::malformed(name, value, "a number"));
        }
        found
    }

    pub(super) fn number(&mut self, name: &'static str, default: f64) -> f64 {
        self.optional_number(name).unwrap_or(default)
    }

    pub(super) fn count(&mut self, name: &'static str, default: usize) -> usize {
        let Some(value) = self.take(name) else { return default };
        let found = value.as_u64().and_then(|count| usize::try_from(count).ok());
        found.unwrap_or_else(|| {
            self.refuse(ConfigError::malformed(name, value, "a whole number of at least 0"));
            default
        })
    }

    /// Takes one of a few words; null is not one of them.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        default: T,
        words: &[(&str, T)],
    ) -> T {
        self.taken.insert(name);
        let Some(value) = self.map.get(name) else { return default };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| value.as_str() == Some(word)) {
            return *meaning;
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let reason = format!("accepted are {}", words.join(", "));
        self.refuse(ConfigError::refused(name, value, reason));
        default
    }

    /// Refuses every untaken field with an effect, and returns all errors.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        let untaken = self.check_untaken();
        self.errors.extend(untaken);
        match self.errors.len() {
            0 => Ok(()),
            1 => Err(self.errors.remove(0)),
            _ => Err(ConfigError::Several(self.errors)),
        }
    }

    fn check_untaken(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let neutral = neutral_fields();
        // Fields that start with an underscore describe the file: `_class_name`, `_diffusers_version`.
        let untaken = self
            .map
            .iter()
            .filter(|(name, _)| !self.taken.contains(name.as_str()) && !name.starts_with('_'));
        for (name, value) in untaken {
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                continue;
            }
            match neutral.iter().find(|(known, ..)| known == name) {
                Some((_, neutral, _)) if value.is_null() || is_same(value, neutral) => {}
                Some((_, _, reason)) => errors.push(ConfigError::refused(name, value, *reason)),
                None if is_off(value) => {}
                None => errors.push(ConfigError::refused(name, value, "the field is unknown")),
            }
        }
        errors
    }
}

/// Returns whether the value of an unknown field turns it off.
fn is_off(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}

fn is_same(value: &Value, other: &Value) -> bool {
    match (number(value), number(other)) {
        (Some(value), Some(other)) => value.total_cmp(&other).is_eq(),
        _ => value == other,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some("Infinity") => Some(f64::INFINITY),
        _ => value.as_f64(),
    }
}
