//! `tools.toml`: which model serves which tool, for whom, on which device.

use std::fmt;
use std::path::Path;

use retouch_catalog::{Factor, FixMode, JobClass, Tier, Tool, ToolName};
use serde::Deserialize;

use crate::device::Device;
use crate::manifest::{Manifest, ManifestError, is_plain_name, read_text, readable};

/// What a model is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The tool, with its factor.
    pub tool: Tool,
    /// Who it is run for.
    pub tier: Tier,
}

impl Demand {
    /// Whether what is met is enough to take jobs of a class: all that they may ask for; of Magic Fix one mode, because
    /// nothing is accepted that nobody can do.
    pub fn make_up(class: JobClass, is_met: impl Fn(Self) -> bool) -> bool {
        let demands = Self::of_class(class);
        match class.tool {
            ToolName::MagicFix => demands.into_iter().any(is_met),
            _ => !demands.is_empty() && demands.into_iter().all(is_met),
        }
    }

    /// The class of the jobs that ask for it.
    pub const fn class(self) -> JobClass {
        JobClass { tier: self.tier, tool: self.tool.name() }
    }

    /// Everything a class of jobs may ask for: free upscales are always twofold.
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

/// `tools.toml`: which model serves which tool and tier on which device.
#[derive(Clone, Debug)]
pub struct Bindings(Vec<Binding>);

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    tool: ToolName,
    tier: Tier,
    device: BoundDevice,
    /// Upscales only: the line is for this factor; without it, for both.
    factor: Option<u8>,
    /// Magic Fix only: the line is for this mode; without it, for all.
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
    /// When the file is missing, is not TOML, or binds something impossible.
    pub fn read(models_dir: &Path) -> Result<Self, ManifestError> {
        let file = models_dir.join("tools.toml");
        let text = read_text(&file)?;
        Self::parse(&text).map_err(|problem| ManifestError { file, problem })
    }

    /// What the text of a `tools.toml` says.
    ///
    /// # Errors
    /// When it is not TOML, or binds something impossible; the text says what.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            #[serde(default)]
            bind: Vec<Binding>,
        }
        let written: Written = toml::from_str(text).map_err(|error| readable(&error))?;
        for binding in &written.bind {
            binding.check_words()?;
        }
        Ok(Self(written.bind))
    }

    /// The model that meets a demand on a device: the first line that fits.
    pub fn model_for(&self, demand: Demand, device: Device) -> Option<&str> {
        self.0
            .iter()
            .find(|binding| binding.fits(demand, device))
            .map(|binding| binding.model.as_str())
    }

    /// The classes of jobs that can be taken on a device.
    pub fn classes(&self, device: Device) -> Vec<JobClass> {
        let mut classes: Vec<_> = self
            .0
            .iter()
            .map(|binding| JobClass { tier: binding.tier, tool: binding.tool })
            .filter(|class| {
                Demand::make_up(*class, |demand| self.model_for(demand, device).is_some())
            })
            .collect();
        classes.sort();
        classes.dedup();
        classes
    }

    /// Every demand that is met on a device, with the model that meets it.
    pub fn served(&self, device: Device) -> Vec<(Demand, &str)> {
        self.classes(device)
            .into_iter()
            .flat_map(Demand::of_class)
            .filter_map(|demand| Some((demand, self.model_for(demand, device)?)))
            .collect()
    }

    /// The names of the models that are needed on a device, each once.
    pub fn models(&self, device: Device) -> Vec<&str> {
        let mut names: Vec<_> = self.served(device).into_iter().map(|(_, model)| model).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The names of all models that are bound, on whatever device, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.iter().map(|binding| binding.model.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a line binds a model on a device.
    pub fn is_bound_on(&self, model: &str, device: Device) -> bool {
        self.0.iter().any(|binding| binding.model == model && binding.device.includes(device))
    }

    /// The lines that bind a model, as people find them: which `[[bind]]` it is, counted from 1, and what it binds.
    pub fn lines_of(&self, model: &str) -> Vec<String> {
        let numbered = (1..).zip(&self.0).filter(|(_, binding)| binding.model == model);
        numbered.map(|(number, binding)| format!("[[bind]] {number} ({binding})")).collect()
    }

    /// What is wrong with the lines that bind a model, each in one sentence.
    pub fn faults(&self, manifest: &Manifest) -> Vec<String> {
        let numbered = (1..).zip(&self.0).filter(|(_, binding)| binding.model == manifest.name);
        numbered
            .filter_map(|(number, binding)| {
                let problem = binding.check(manifest).err()?;
                Some(format!("[[bind]] {number}: {problem}"))
            })
            .collect()
    }

    /// Checks that every bound model exists and can do what it is bound to.
    ///
    /// # Errors
    /// When a bound model has no readable manifest, or cannot do what it is bound to.
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
    /// What is wrong whatever the model is.
    fn check_words(&self) -> Result<(), String> {
        let Self { tool, model, factor, mode, .. } = self;
        if !is_plain_name(model) {
            return Err(format!("model {model:?} must be the name of a folder beside tools.toml"));
        }
        if factor.is_some_and(|factor| Factor::from_number(factor.into()).is_none()) {
            return Err(format!("{model} is bound to a factor that is neither 2 nor 4"));
        }
        if factor.is_some() && *tool != ToolName::Upscale {
            return Err(format!("{tool} has no factor, but {model} is bound to one"));
        }
        if mode.is_some() && *tool != ToolName::MagicFix {
            return Err(format!("{tool} has no mode, but {model} is bound to one"));
        }
        Ok(())
    }

    /// What is wrong with this model in this place.
    fn check(&self, manifest: &Manifest) -> Result<(), String> {
        let Self { tool, model, factor, mode, .. } = self;
        let class = JobClass { tier: self.tier, tool: *tool };
        let is_asked = |demand: &Demand| {
            factor.is_none_or(|bound| demand.tool.factor().map(Factor::get) == Some(bound))
                && mode.is_none_or(|bound| demand.tool.mode() == Some(bound))
        };
        for demand in Demand::of_class(class).into_iter().filter(is_asked) {
            manifest.task.can_serve(demand.tool).map_err(|why| {
                format!("{tool} is bound to {model}, which cannot serve it: {why}")
            })?;
        }
        Ok(())
    }
}
