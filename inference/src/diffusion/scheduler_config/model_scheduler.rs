//! The scheduler that a model runs with: the scheduler in its folder, or the scheduler that its manifest states
//! instead.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::name::is_replaceable;
use super::{ConfigError, SchedulerConfig, SchedulerName};
use crate::diffusion::error::DiffusionError;
use crate::diffusion::json;

/// A model's scheduler. Its text names the class that runs, and the class that it replaces.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelScheduler {
    pub config: SchedulerConfig,
    /// The class in the model's `scheduler_config.json`.
    pub shipped_class: String,
}

impl ModelScheduler {
    /// Reads `scheduler/scheduler_config.json` in a model's folder. `replacement` takes the place of its class
    /// ([`SchedulerConfig::replaced`]).
    ///
    /// # Errors
    /// If the file cannot be read or names no class, or the class or a field is not implemented.
    pub fn read(folder: &Path, replacement: Option<SchedulerName>) -> Result<Self, DiffusionError> {
        let path = folder.join("scheduler/scheduler_config.json");
        let object = json::read_object(&path)?;
        let class = object
            .get("_class_name")
            .and_then(Value::as_str)
            .ok_or_else(|| DiffusionError::file(&path, "`_class_name` is missing"))?;
        let config = match replacement {
            Some(name) => SchedulerConfig::replaced(class, &object, name),
            None => SchedulerConfig::of_class(class, &object),
        };
        let config = config.map_err(|error| match error {
            ConfigError::Class(class) if is_replaceable(&class) => ConfigError::Replaceable(class),
            other => other,
        })?;
        Ok(Self { config, shipped_class: class.to_owned() })
    }
}

impl fmt::Display for ModelScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.config.solver.name();
        write!(f, "scheduler {name}")?;
        if name.class() != self.shipped_class {
            write!(f, " in place of the model's {}", self.shipped_class)?;
        }
        Ok(())
    }
}
