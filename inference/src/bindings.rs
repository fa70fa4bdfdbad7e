//! `tools.toml`: which model serves which tool, for whom, on which device; and which one answers clicks.

use std::fmt;
use std::path::Path;

use retouch_catalog::{Factor, FixMode, JobClass, Tier, Tool, ToolName};
use serde::Deserialize;

use crate::device::Device;
use crate::manifest::{Manifest, ManifestError, Task, is_plain_name, read_text, readable};

/// The key by which a model is looked up: a tool and a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The tool, with its factor or fix mode.
    pub tool: Tool,
    pub tier: Tier,
}

impl Demand {
    /// Returns whether meeting these demands is enough to take jobs of a class. A class requires all of its demands;
    /// Magic Fix requires one mode, because the API accepts only jobs whose mode a worker serves.
    pub fn suffice_for(class: JobClass, is_met: impl Fn(Self) -> bool) -> bool {
        let demands = Self::of_class(class);
        match class.tool {
            ToolName::MagicFix => demands.into_iter().any(is_met),
            _ => !demands.is_empty() && demands.into_iter().all(is_met),
        }
    }

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

/// What an entry serves: a demand, for pictures of up to a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    pub demand: Demand,
    /// Maximum number of pixels, width times height, of a picture; `None` for any size.
    pub largest_pixels: Option<u64>,
}

impl Scope {
    pub fn includes(self, pixels: u64) -> bool {
        self.largest_pixels.is_none_or(|largest| pixels <= largest)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.demand.fmt(f)?;
        match self.largest_pixels {
            Some(largest) => write!(f, " up to {largest} pixels"),
            None => Ok(()),
        }
    }
}

/// The entries of `tools.toml`, in order.
#[derive(Clone, Debug)]
pub struct Bindings {
    tools: Vec<Binding>,
    selectors: Vec<Selector>,
}

/// A `[[select]]` entry: a model that answers clicks on a device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selector {
    device: BoundDevice,
    model: String,
}

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
    /// Maximum number of pixels of a picture; larger pictures go to the next entry that fits. `None` for any size.
    largest_pixels: Option<u64>,
    model: String,
}

impl Binding {
    const fn class(&self) -> JobClass {
        JobClass { tier: self.tier, tool: self.tool }
    }

    fn fits(&self, demand: Demand, device: Device) -> bool {
        let factor = demand.tool.factor().map(Factor::get);
        self.device.includes(device)
            && self.tool == demand.tool.name()
            && self.tier == demand.tier
            && self.factor.is_none_or(|bound| factor == Some(bound))
            && self.mode.is_none_or(|bound| demand.tool.mode() == Some(bound))
    }

    /// Returns whether this entry takes pictures of every size that `later` takes.
    fn includes_sizes_of(&self, later: &Self) -> bool {
        self.largest_pixels.is_none_or(|own| later.largest_pixels.is_some_and(|other| other <= own))
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
        if let Some(largest) = self.largest_pixels {
            write!(f, " up to {largest} pixels")?;
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
            #[serde(default)]
            select: Vec<Selector>,
        }
        let file: File = toml::from_str(text).map_err(|error| readable(&error))?;
        // A file that is being written, or a full disk, must not withdraw every tool.
        if file.bind.is_empty() && file.select.is_empty() {
            let what =
                if text.trim().is_empty() { "the file is empty" } else { "it has no [[bind]]" };
            return Err(format!(
                "{what}, so no tool would be served; add an entry, or restore the file from its last version"
            ));
        }
        for binding in &file.bind {
            binding.check_fields()?;
        }
        for Selector { model, .. } in &file.select {
            check_model_name(model)?;
        }
        let bindings = Self { tools: file.bind, selectors: file.select };
        bindings.check_sizes()?;
        Ok(bindings)
    }

    /// Returns the model that meets a demand on a device for pictures of any size: the model of the first fitting entry
    /// without `largest_pixels`.
    pub fn model_for(&self, demand: Demand, device: Device) -> Option<&str> {
        self.fitting(demand, device)
            .find(|binding| binding.largest_pixels.is_none())
            .map(|binding| binding.model.as_str())
    }

    /// Returns the entries that fit, in order.
    fn fitting(&self, demand: Demand, device: Device) -> impl Iterator<Item = &Binding> {
        self.tools.iter().filter(move |binding| binding.fits(demand, device))
    }

    /// Checks that wherever an entry stops at a size, another one serves larger pictures.
    fn check_sizes(&self) -> Result<(), String> {
        for binding in self.tools.iter().filter(|binding| binding.largest_pixels.is_some()) {
            let demands = Demand::of_class(JobClass { tier: binding.tier, tool: binding.tool });
            for device in [Device::Cpu, Device::Cuda] {
                let is_open = |demand: &&Demand| {
                    binding.fits(**demand, device) && self.model_for(**demand, device).is_none()
                };
                if let Some(demand) = demands.iter().find(is_open) {
                    return Err(format!(
                        "the entry for {} has largest_pixels, so another entry must serve larger pictures for {demand} \
                         on {device}",
                        binding.model
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the classes of jobs that can be taken on a device.
    pub fn classes(&self, device: Device) -> Vec<JobClass> {
        let mut classes: Vec<_> = self
            .tools
            .iter()
            .map(Binding::class)
            .filter(|class| {
                Demand::suffice_for(*class, |demand| self.model_for(demand, device).is_some())
            })
            .collect();
        classes.sort();
        classes.dedup();
        classes
    }

    /// Returns the scopes that are served on a device, with their models. For each demand, the first scope that
    /// includes a picture wins; the last includes all sizes.
    pub fn served(&self, device: Device) -> Vec<(Scope, &str)> {
        let mut served: Vec<(Scope, &str)> = Vec::new();
        for demand in self.classes(device).into_iter().flat_map(Demand::of_class) {
            for Binding { largest_pixels, model, .. } in self.fitting(demand, device) {
                served.push((Scope { demand, largest_pixels: *largest_pixels }, model));
                if largest_pixels.is_none() {
                    break;
                }
            }
        }
        served
    }

    /// Returns the model that answers clicks on a device: the model of the first fitting `[[select]]`. Without one, the
    /// net that finds subjects does.
    pub fn selector_on(&self, device: Device) -> Option<&str> {
        let fits = |selector: &&Selector| selector.device.includes(device);
        self.selectors.iter().find(fits).map(|selector| selector.model.as_str())
    }

    /// Returns the names of the models that are needed on a device, each once.
    pub fn models_on(&self, device: Device) -> Vec<&str> {
        let mut names: Vec<_> = self.served(device).into_iter().map(|(_, model)| model).collect();
        names.extend(self.selector_on(device));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the names of all bound models, on any device, each once.
    pub fn all_models(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.tools.iter().map(|binding| binding.model.as_str()).collect();
        names.extend(self.selectors.iter().map(|selector| selector.model.as_str()));
        names.sort_unstable();
        names.dedup();
        names
    }

    pub fn is_bound_on(&self, model: &str, device: Device) -> bool {
        self.tools.iter().any(|binding| binding.model == model && binding.device.includes(device))
            || self.selectors.iter().any(|own| own.model == model && own.device.includes(device))
    }

    /// Describes the entries that bind a model, by their number in the file (from 1) and what they bind.
    pub fn describe_entries(&self, model: &str) -> Vec<String> {
        let tools = (1..).zip(&self.tools).filter(|(_, binding)| binding.model == model);
        let selectors = (1..).zip(&self.selectors).filter(|(_, selector)| selector.model == model);
        tools
            .map(|(number, binding)| format!("[[bind]] {number} ({binding})"))
            .chain(selectors.map(|(number, Selector { device, .. })| {
                format!("[[select]] {number} (clicks on {device})")
            }))
            .collect()
    }

    /// Returns the problems of the entries that bind a model, one sentence each.
    pub fn problems(&self, manifest: &Manifest) -> Vec<String> {
        let is_own = |model: &str| model == manifest.name;
        let tools = (0..self.tools.len()).filter(|index| is_own(&self.tools[*index].model));
        let tools = tools.filter_map(|index| {
            let problem = self.tools[index].check(manifest).err();
            let problem = problem.or_else(|| self.why_unreached(index))?;
            Some(format!("[[bind]] {}: {problem}", index + 1))
        });
        let selectors =
            (0..self.selectors.len()).filter(|index| is_own(&self.selectors[*index].model));
        let selectors = selectors.filter_map(|index| {
            let problem = check_selects(manifest).err();
            let problem = problem.or_else(|| self.why_selector_unreached(index))?;
            Some(format!("[[select]] {}: {problem}", index + 1))
        });
        tools.chain(selectors).collect()
    }

    /// Describes the entries by which a model serves paid runs although its license forbids that, one sentence each. An
    /// operator may have bought another license, so these are not problems.
    pub fn notices(&self, manifest: &Manifest) -> Vec<String> {
        let Manifest { name, licence, commercial_use, .. } = manifest;
        let is_paid = |binding: &Binding| binding.model == *name && binding.tier == Tier::Paid;
        let paid = (1..).zip(&self.tools).filter(|(_, own)| !commercial_use && is_paid(own));
        let notice = |(number, binding)| {
            format!(
                "[[bind]] {number}: it serves {binding}, but its license, {licence}, does not allow commercial use"
            )
        };
        paid.map(notice).collect()
    }

    /// Explains why a `[[select]]` answers no click; `None` if it answers some.
    fn why_selector_unreached(&self, index: usize) -> Option<String> {
        let (before, from) = self.selectors.split_at(index);
        let device = from.first()?.device;
        let is_answered = |on: Device| before.iter().any(|earlier| earlier.device.includes(on));
        let mut devices = [Device::Cpu, Device::Cuda].into_iter().filter(|on| device.includes(*on));
        devices.all(is_answered).then(|| {
            "it is never reached, because the first entry that fits wins; remove one of them, or move this entry up"
                .to_owned()
        })
    }

    /// Explains why an entry serves no job; `None` if it serves some.
    fn why_unreached(&self, index: usize) -> Option<String> {
        let binding = &self.tools[index];
        let on = |device: &Device| binding.device.includes(*device);
        let devices = [Device::Cpu, Device::Cuda].into_iter().filter(on);
        let demands = Demand::of_class(binding.class());
        let fitting: Vec<_> = devices
            .flat_map(|device| demands.iter().map(move |demand| (*demand, device)))
            .filter(|(demand, device)| binding.fits(*demand, *device))
            .collect();
        if fitting.is_empty() {
            return Some(format!("no job ever asks for {binding}; remove the entry"));
        }
        let mut earlier = Vec::new();
        for (demand, device) in fitting {
            let first = self.tools[..index]
                .iter()
                .position(|first| first.fits(demand, device) && first.includes_sizes_of(binding))?;
            if !earlier.contains(&first) {
                earlier.push(first);
            }
        }
        earlier.sort_unstable();
        let earlier: Vec<_> = earlier
            .into_iter()
            .map(|first| {
                format!(
                    "[[bind]] {} ({}, {})",
                    first + 1,
                    self.tools[first].model,
                    self.tools[first]
                )
            })
            .collect();
        Some(format!(
            "it is never reached, because the first entry that fits wins: {} serves {binding} already; remove one of \
             them, or move this entry up",
            earlier.join(" and ")
        ))
    }

    /// Checks that every bound model exists and can serve its tools.
    ///
    /// # Errors
    /// If the manifest of a bound model is invalid, or the model cannot serve a tool.
    pub fn check(&self, models_dir: &Path) -> Result<(), ManifestError> {
        let file = models_dir.join("tools.toml");
        let refused = |problem| ManifestError { file: file.clone(), problem };
        for binding in &self.tools {
            let manifest = Manifest::read(&models_dir.join(&binding.model))?;
            binding.check(&manifest).map_err(refused)?;
        }
        for Selector { model, .. } in &self.selectors {
            let manifest = Manifest::read(&models_dir.join(model))?;
            check_selects(&manifest).map_err(refused)?;
        }
        Ok(())
    }
}

/// Checks that a model can answer clicks.
fn check_selects(manifest: &Manifest) -> Result<(), String> {
    let Manifest { name, task, .. } = manifest;
    match task {
        Task::SegmentAnything(_) => Ok(()),
        other => Err(format!(
            "[[select]] names {name}, which cannot answer clicks: its task is {}, not segment-anything",
            other.as_str()
        )),
    }
}

fn check_model_name(model: &str) -> Result<(), String> {
    if is_plain_name(model) {
        Ok(())
    } else {
        Err(format!("model is {model:?}, but must be the name of a folder next to tools.toml"))
    }
}

impl Binding {
    /// Checks the fields without looking at the model.
    fn check_fields(&self) -> Result<(), String> {
        let Self { tool, model, factor, mode, .. } = self;
        check_model_name(model)?;
        if factor.is_some_and(|factor| Factor::from_number(factor.into()).is_none()) {
            return Err(format!("factor of the entry for {model} must be 2 or 4"));
        }
        if self.largest_pixels == Some(0) {
            return Err(format!("largest_pixels of the entry for {model} must be at least 1"));
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
        let is_bound = |demand: &Demand| {
            factor.is_none_or(|bound| demand.tool.factor().map(Factor::get) == Some(bound))
                && mode.is_none_or(|bound| demand.tool.mode() == Some(bound))
        };
        for demand in Demand::of_class(self.class()).into_iter().filter(is_bound) {
            manifest.task.can_serve(demand.tool).map_err(|reason| {
                format!("{tool} is bound to {model}, which cannot serve it: {reason}")
            })?;
        }
        Ok(())
    }
}
