//! Reads the fields of a `scheduler_config.json`, and knows which were not read.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::ConfigError;

/// Fields that must be at rest wherever a class does not read them: their value, and why another is refused.
fn neutral_fields() -> [(&'static str, Value, &'static str); 21] {
    const NO_CLIP: &str = "latents are not clipped";
    const NO_SIGMAS: &str = "these sigmas are not implemented for this class";
    const NO_FLOW: &str = "flow matching is FLUX's, not this scheduler's";
    const NO_DPM: &str = "this class does not read it, only DPM-Solver++ does";
    const NO_EULER: &str = "Euler is implemented without it, and other classes do not read it";
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
        ("variance_type", Value::Null, "no net here predicts its variance"),
        (
            "algorithm_type",
            json!("dpmsolver++"),
            "of these solvers only DPM-Solver++ is implemented",
        ),
        ("solver_order", json!(2), NO_DPM),
        ("solver_type", json!("midpoint"), NO_DPM),
        ("lower_order_final", json!(true), NO_DPM),
        ("euler_at_final", json!(false), NO_DPM),
        ("lambda_min_clipped", json!("-Infinity"), NO_DPM),
        (
            "final_sigmas_type",
            json!("zero"),
            "this class does not read it, only DPM-Solver++ and Euler do",
        ),
        ("interpolation_type", json!("linear"), NO_EULER),
        ("timestep_type", json!("discrete"), NO_EULER),
        ("original_inference_steps", json!(50), "this class does not read it, only LCM and TCD do"),
    ]
}

/// Fields that only parametrise what is off, or that diffusers reads in no formula of the classes at hand: any
/// value of theirs means the same.
const WITHOUT_EFFECT: [&str; 6] = [
    // With `clip_sample` and `thresholding` off.
    "clip_sample_range",
    "dynamic_thresholding_ratio",
    "sample_max_value",
    // Of PNDM's warm-up, which DPM-Solver++ in its place does not have.
    "skip_prk_steps",
    // Where a class has no last alpha of its own.
    "set_alpha_to_one",
    // TCD keeps LCM's field and does not use it.
    "timestep_scaling",
];

/// The fields of one file. What is wrong with one is kept until [`Self::finish`], and its default stands in for it
/// until then: whoever mends a file is told of everything at once.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'static str>,
    wrong: Vec<ConfigError>,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(map: &'a Map<String, Value>) -> Self {
        Self { map, taken: BTreeSet::new(), wrong: Vec::new() }
    }

    /// Refuses the file for a reason, once however often it is found.
    pub(super) fn refuse(&mut self, reason: ConfigError) {
        if !self.wrong.contains(&reason) {
            self.wrong.push(reason);
        }
    }

    /// A field's value; `None` when it is absent or null.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.taken.insert(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether the file names a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// A flag; null is false, as it is to Python.
    pub(super) fn flag(&mut self, name: &'static str, absent: bool) -> bool {
        self.taken.insert(name);
        match self.map.get(name) {
            None => absent,
            Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.refuse(ConfigError::malformed(name, other, "true or false"));
                absent
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

    pub(super) fn number(&mut self, name: &'static str, absent: f64) -> f64 {
        self.optional_number(name).unwrap_or(absent)
    }

    pub(super) fn count(&mut self, name: &'static str, absent: usize) -> usize {
        let Some(value) = self.take(name) else { return absent };
        let found = value.as_u64().and_then(|count| usize::try_from(count).ok());
        found.unwrap_or_else(|| {
            self.refuse(ConfigError::malformed(name, value, "a whole number, 0 or more"));
            absent
        })
    }

    /// One of a few words; null is none of them.
    pub(super) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        absent: T,
        words: &[(&str, T)],
    ) -> T {
        self.taken.insert(name);
        let Some(value) = self.map.get(name) else { return absent };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| value.as_str() == Some(word)) {
            return *meaning;
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let reason = format!("this class is implemented for {}", words.join(", "));
        self.refuse(ConfigError::refused(name, value, reason));
        absent
    }

    /// Refuses every field that has not been taken and whose value would mean something, and says all that is wrong.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        let meant_otherwise = self.meant_otherwise();
        self.wrong.extend(meant_otherwise);
        match self.wrong.len() {
            0 => Ok(()),
            1 => Err(self.wrong.remove(0)),
            _ => Err(ConfigError::Several(self.wrong)),
        }
    }

    fn meant_otherwise(&self) -> Vec<ConfigError> {
        let mut wrong = Vec::new();
        let neutral = neutral_fields();
        // Fields that begin with an underscore describe the file: `_class_name`, `_diffusers_version`.
        let left = self
            .map
            .iter()
            .filter(|(name, _)| !self.taken.contains(name.as_str()) && !name.starts_with('_'));
        for (name, value) in left {
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                continue;
            }
            match neutral.iter().find(|(known, ..)| known == name) {
                Some((_, at_rest, _)) if value.is_null() || is_same(value, at_rest) => {}
                Some((_, _, reason)) => wrong.push(ConfigError::refused(name, value, *reason)),
                None if is_at_rest(value) => {}
                None => wrong.push(ConfigError::refused(name, value, "this field is not known")),
            }
        }
        wrong
    }
}

/// Whether an unknown field is switched off by its value.
fn is_at_rest(value: &Value) -> bool {
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
