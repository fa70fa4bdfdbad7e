//! `tools.toml`: which model serves which tool, for whom, on which device.

use std::fmt;
use std::path::Path;

use retouch_catalog::{Factor, FixMode, JobClass, Tier, Tool, ToolName};
use serde::Deserialize;

use crate::device::Device;
use crate::manifest::{Manifest, ManifestError, is_plain_name, read_text, readable};

/// The key by which a model is looked up: a tool and a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The tool, with its factor or fix mode.
    pub tool: Tool,
    /// The tier of the job.
    pub tier: Tier,
}

impl Demand {
    /// Returns whether the met demands suffice to take jobs of a class. A class requires all of its demands; Magic Fix
    /// requires one mode, because the API accepts only jobs whose mode a worker serves.
    pub fn suffice_for(class: JobClass, is_met: impl Fn(Self) -> bool) -> bool {
        let demands = Self::of_class(class);
        match class.tool {
            ToolName::MagicFix => demands.into_iter().any(is_met),
            _ => !demands.is_empty() && demands.into_iter().all(is_met),
        }
    }

    /// Returns the class of jobs with this demand.
    pub const fn class(self) -> JobClass {
        JobClass { tier: self.tier, tool: self.tool.name() }
    }

    /// Returns every demand that jobs of a class can have. Free upscales are always 2x.
    pub fn of_class(class: JobClass) -> Vec<Self> {
        let tier = class.tier;
        let tools: &[Tool] = match (class.tool, tier) {
            (ToolName::RemoveBackground, _) => &[Tool::RemoveBackground],
            (ToolName::Upscale, Tier::Paid) => {
                &[Tool::Upscale(Factor::X2), Tool::Upscale(Factor::X4)]
            }
            (ToolName::Upscale, Tier::Free | Tier::Visitor) => &[Tool::Upscale(Factor::X2)],
            (ToolName::MagicFix, Tier::Paid) => {
                return FixMode::ALL
                    .iter()
                    .map(|mode| Self { tool: Tool::MagicFix(*mode), tier })
                    .collect();
            }
            (ToolName::MagicFix, Tier::Free | Tier::Visitor) => &[],
        };
        tools.iter().map(|tool| Self { tool: *tool, tier }).collect()
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tool.name(), self.tier)?;
        match self.tool {
            Tool::RemoveBackground => Ok(()),
            Tool::Upscale(factor) => write!(f, ":{}x", factor.get()),
            Tool::MagicFix(mode) => write!(f, ":{mode}"),
        }
    }
}

/// The `[[bind]]` entries of `tools.toml`, in order.
#[derive(Clone, Debug)]
pub struct Bindings(Vec<Binding>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    tool: ToolName,
    tier: Tier,
    device: BoundDevice,
    /// Upscales only: the factor; `None` for both.
    factor: Option<u8>,
    /// Magic Fix only: the mode; `None` for all.
    mode: Option<FixMode>,
    model: String,
}

impl Binding {
    fn fits(&self, demand: Demand, device: Device) -> bool {
        let factor = demand.tool.factor().map(Factor::get);
        self.device.includes(device)
            && self.tool == demand.tool.name()
            && self.tier == demand.tier
            && self.factor.is_none_or(|bound| factor == Some(bound))
            && self.mode.is_none_or(|bound| demand.tool.mode() == Some(bound))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BoundDevice {
    Any,
    Cpu,
    Cuda,
}

impl BoundDevice {
    fn includes(self, device: Device) -> bool {
        match self {
            Self::Any => true,
            Self::Cpu => device == Device::Cpu,
            Self::Cuda => device == Device::Cuda,
        }
    }
}

impl fmt::Display for BoundDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any device"),
            Self::Cpu => f.write_str(Device::Cpu.as_str()),
            Self::Cuda => f.write_str(Device::Cuda.as_str()),
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tool, self.tier)?;
        if let Some(factor) = self.factor {
            write!(f, ":{factor}x")?;
        }
        if let Some(mode) = self.mode {
            write!(f, ":{mode}")?;
        }
        write!(f, " on {}", self.device)
    }
}

impl Bindings {
    /// Reads `models_dir/tools.toml`.
    ///
    /// # Errors
    /// If the file is missing, is not TOML, or has an invalid entry.
    pub fn read(models_dir: &Path) -> Result<Self, ManifestError> {
        let file = models_dir.join("tools.toml");
        let text = read_text(&file)?;
        Self::parse(&text).map_err(|problem| ManifestError { file, problem })
    }

    /// Parses the text of a `tools.toml`.
    ///
    /// # Errors
    /// The problem, if it is not TOML or has an invalid entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            bind: Vec<Binding>,
        }
        let file: File = toml::from_str(text).map_err(|error| readable(&error))?;
        for binding in &file.bind {
            binding.check_fields()?;
        }
        Ok(Self(file.bind))
    }

    /// Returns the model that meets a demand on a device: that of the first fitting entry.
    pub fn model_for(&self, demand: Demand, device: Device) -> Option<&str> {
        self.0
            .iter()
            .find(|binding| binding.fits(demand, device))
            .map(|binding| binding.model.as_str())
    }

    /// Returns the classes of jobs that can be taken on a device.
    pub fn classes(&self, device: Device) -> Vec<JobClass> {
        let mut classes: Vec<_> = self
            .0
            .iter()
            .map(|binding| JobClass { tier: binding.tier, tool: binding.tool })
            .filter(|class| {
                Demand::suffice_for(*class, |demand| self.model_for(demand, device).is_some())
            })
            .collect();
        classes.sort();
        classes.dedup();
        classes
    }

    /// Returns every demand that is met on a device, with its model.
    pub fn served(&self, device: Device) -> Vec<(Demand, &str)> {
        self.classes(device)
            .into_iter()
            .flat_map(Demand::of_class)
            .filter_map(|demand| Some((demand, self.model_for(demand, device)?)))
            .collect()
    }

    /// Returns the names of the models that are needed on a device, each once.
    pub fn models_on(&self, device: Device) -> Vec<&str> {
        let mut names: Vec<_> = self.served(device).into_iter().map(|(_, model)| model).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the names of all bound models, on any device, each once.
    pub fn all_models(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.iter().map(|binding| binding.model.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns whether an entry binds a model on a device.
    pub fn is_bound_on(&self, model: &str, device: Device) -> bool {
        self.0.iter().any(|binding| binding.model == model && binding.device.includes(device))
    }

    /// Describes the entries that bind a model, by their number in the file (from 1) and what they bind.
    pub fn describe_entries(&self, model: &str) -> Vec<String> {
        let numbered = (1..).zip(&self.0).filter(|(_, binding)| binding.model == model);
        numbered.map(|(number, binding)| format!("[[bind]] {number} ({binding})")).collect()
    }

    /// Returns the problems of the entries that bind a model, one sentence each.
    pub fn problems(&self, manifest: &Manifest) -> Vec<String> {
        let numbered = (1..).zip(&self.0).filter(|(_, binding)| binding.model == manifest.name);
        numbered
            .filter_map(|(number, binding)| {
                let problem = binding.check(manifest).err()?;
                Some(format!("[[bind]] {number}: {problem}"))
            })
            .collect()
    }

    /// Checks that every bound model exists and can serve its tools.
    ///
    /// # Errors
    /// If the manifest of a bound model is invalid, or the model cannot serve a tool.
    pub fn check(&self, models_dir: &Path) -> Result<(), ManifestError> {
        let file = models_dir.join("tools.toml");
        for binding in &self.0 {
            let manifest = Manifest::read(&models_dir.join(&binding.model))?;
            binding
                .check(&manifest)
                .map_err(|problem| ManifestError { file: file.clone(), problem })?;
        }
        Ok(())
    }
}

impl Binding {
    /// Checks the fields without looking at the model.
    fn check_fields(&self) -> Result<(), String> {
        let Self { tool, model, factor, mode, .. } = self;
        if !is_plain_name(model) {
            return Err(format!(
                "model is {model:?}, but must be the name of a folder next to tools.toml"
            ));
        }
        if factor.is_some_and(|factor| Factor::from_number(factor.into()).is_none()) {
            return Err(format!("factor of the entry for {model} must be 2 or 4"));
        }
        if factor.is_some() && *tool != ToolName::Upscale {
            return Err(format!("the entry for {model} has a factor, but {tool} takes none"));
        }
        if mode.is_some() && *tool != ToolName::MagicFix {
            return Err(format!("the entry for {model} has a mode, but {tool} takes none"));
        }
        Ok(())
    }

    /// Checks that the model can serve what the entry binds it to.
    fn check(&self, manifest: &Manifest) -> Result<(), String> {
        let Self { tool, model, factor, mode, .. } = self;
        let class = JobClass { tier: self.tier, tool: *tool };
        let is_bound = |demand: &Demand| {
            factor.is_none_or(|bound| demand.tool.factor().map(Factor::get) == Some(bound))
                && mode.is_none_or(|bound| demand.tool.mode() == Some(bound))
        };
        for demand in Demand::of_class(class).into_iter().filter(is_bound) {
            manifest.task.can_serve(demand.tool).map_err(|reason| {
                format!("{tool} is bound to {model}, which cannot serve it: {reason}")
            })?;
        }
        Ok(())
    }
}
