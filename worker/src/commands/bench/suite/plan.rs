//! The cases that `bench --all` measures, most informative first.

use std::path::Path;

use retouch_catalog::{Factor, Tier, Tool};
use retouch_inference::bindings::Bindings;
use retouch_inference::device::Device;
use retouch_inference::manifest::{Manifest, ManifestError, NetTask, Precision, Task};
use serde::{Deserialize, Serialize};

/// The kind of work that a case measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Remove Background, from file to PNG.
    RemoveBg,
    /// Upscale by its factor, from file to PNG.
    Upscale,
    /// Paintings of Magic Fix.
    Fix,
    /// Features of a picture, which the first click waits for.
    Click,
}

impl Kind {
    /// Returns the heading of its table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::RemoveBg => "Remove Background",
            Self::Upscale => "Upscale",
            Self::Fix => "Magic Fix",
            Self::Click => "Click to select",
        }
    }

    /// Returns whether pictures of different sizes, several in flight, are measured.
    pub const fn has_sizes(self) -> bool {
        matches!(self, Self::RemoveBg | Self::Upscale)
    }
}

/// How a model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    /// The arguments that select it; all others are as in `serve`.
    args: &'static [&'static str],
    /// Whether engines are built, into a folder of the suite.
    builds_engines: bool,
}

/// The part of ONNX Runtime that builds engines, beside its library. `scripts/models runtime --gpu` does not fetch it,
/// because TensorRT itself takes gigabytes.
const TENSORRT_LIBRARY: &str = "libonnxruntime_providers_tensorrt.so";

/// The setting whose results the others are compared with.
pub const REFERENCE: &str = "CPU";

const CHANNELS_LAST: &str = "--channels-last=true";
const CHANNELS_FIRST: &str = "--channels-last=false";

const fn setting(name: &'static str, args: &'static [&'static str]) -> Setting {
    Setting { name, args, builds_engines: false }
}

const ON_CPU: [Setting; 2] = [
    setting(REFERENCE, &["--device=cpu"]),
    setting("CPU, batches of 8", &["--device=cpu", "--batch=8"]),
];

const ON_CUDA: [Setting; 11] = [
    setting("CUDA", &["--device=cuda"]),
    setting("CUDA, one by one", &["--device=cuda", "--batch=1"]),
    setting("CUDA, any shape", &["--device=cuda", "--few-shapes=false"]),
    // In 16 bits, it would only deny convolutions their tensor cores.
    setting("CUDA, f32 without TF32", &["--device=cuda", "--tf32=false", "--precision=f32"]),
    setting("CUDA, f16", &["--device=cuda", "--precision=f16"]),
    setting("CUDA, f32", &["--device=cuda", "--precision=f32"]),
    setting("CUDA, channels last", &["--device=cuda", CHANNELS_LAST]),
    setting("CUDA, channels first", &["--device=cuda", CHANNELS_FIRST]),
    setting("CUDA, tensors not kept", &["--device=cuda", "--keep-tensors=false"]),
    // A graph is for one shape.
    setting("CUDA graphs", &["--device=cuda", "--cuda-graphs=true", "--batch=1"]),
    Setting { builds_engines: true, ..setting("TensorRT", &["--device=cuda"]) },
];

impl Setting {
    /// Returns the arguments of the process that measures it.
    pub fn arguments(&self, out: &Path) -> Vec<String> {
        let mut args: Vec<_> = self.args.iter().map(ToString::to_string).collect();
        if self.builds_engines {
            args.push(format!("--tensorrt-cache={}", out.join("engines").display()));
        }
        args
    }

    /// Returns whether it can be measured with an ONNX Runtime library.
    pub fn is_possible(&self, library: &Path) -> bool {
        !self.builds_engines || library.with_file_name(TENSORRT_LIBRARY).is_file()
    }

    /// Returns whether it changes how many inputs run together, which concerns only nets for pictures.
    pub fn is_about_batches(&self) -> bool {
        self.args.iter().any(|argument| argument.starts_with("--batch="))
    }

    /// Returns whether it only repeats what nets of this kind do by default.
    fn repeats_default(&self, kind: Kind) -> bool {
        let default = if kind == Kind::Upscale { CHANNELS_LAST } else { CHANNELS_FIRST };
        self.args.contains(&default)
    }

    /// Returns how precisely it makes nets compute; `None` for as their manifests say.
    pub fn precision(&self) -> Option<Precision> {
        [Precision::F32, Precision::F16].into_iter().find(|precision| {
            let argument = format!("--precision={}", precision.as_str());
            self.args.contains(&argument.as_str())
        })
    }
}

/// A picture size and how many pictures are processed at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Megapixels of the input; 0 for models with one size.
    pub megapixels: u32,
    pub in_flight: usize,
}

/// The only load of models that work at one size.
const ONE: Load = Load { megapixels: 0, in_flight: 1 };

/// The loads of the others, the most telling first. A CPU is busy with a few pictures.
const fn loads(device: Device) -> [Load; 6] {
    let many = match device {
        Device::Cpu => 4,
        Device::Cuda => 16,
    };
    [
        Load { megapixels: 1, in_flight: many },
        Load { megapixels: 12, in_flight: many / 2 },
        Load { megapixels: 1, in_flight: 1 },
        Load { megapixels: 12, in_flight: 1 },
        Load { megapixels: 24, in_flight: many / 2 },
        Load { megapixels: 1, in_flight: many / 4 * 2 },
    ]
}

/// How many of the loads every model gets under the default setting before any gets the others.
const FIRST_LOADS: usize = 2;

/// One process: a model under a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub kind: Kind,
    pub model: String,
    pub setting: Setting,
    /// The loads, in order. Empty if the process only makes a result, to compare others with or to be compared.
    pub loads: Vec<Load>,
}

/// Returns the cases for the models that are bound on a device and pictures of some sizes, models of paid jobs first: every
/// model under the default setting, then the results to compare with and the comparison, then the other settings with one
/// load, and then all of them with all loads.
///
/// # Errors
/// If a bound model's manifest is invalid.
pub fn cases(
    models_dir: &Path,
    bindings: &Bindings,
    device: Device,
    megapixels: &[u32],
) -> Result<Vec<Case>, ManifestError> {
    let settings: &[Setting] = match device {
        Device::Cpu => &ON_CPU,
        Device::Cuda => &ON_CUDA,
    };
    let mut served = bindings.served(device);
    served.sort_by_key(|(scope, _)| scope.demand.tier != Tier::Paid);
    let names = served.into_iter().map(|(_, name)| name).chain(bindings.selector_on(device));
    let mut measured: Vec<(Kind, Manifest)> = Vec::new();
    for name in names {
        if !measured.iter().any(|(_, known)| known.name == name) {
            let manifest = Manifest::read(&models_dir.join(name))?;
            if let Some(kind) = kind_of(&manifest.task) {
                measured.push((kind, manifest));
            }
        }
    }
    let loads = loads(device).into_iter().filter(|load| megapixels.contains(&load.megapixels));
    let loads: Vec<_> = loads.collect();
    let first = &loads[..FIRST_LOADS.min(loads.len())];
    let case = |(kind, manifest): &(Kind, Manifest), setting: Setting, sized: &[Load]| Case {
        kind: *kind,
        model: manifest.name.clone(),
        setting,
        loads: match (kind.has_sizes(), sized) {
            (true, sized) => sized.to_vec(),
            (false, []) => Vec::new(),
            (false, _) => vec![ONE],
        },
    };
    let (default, others) = (settings[0], &settings[1..]);
    let with_nets: Vec<_> =
        measured.iter().filter(|(_, manifest)| runs_a_net(&manifest.task)).collect();
    let mut cases: Vec<_> = measured.iter().map(|own| case(own, default, first)).collect();
    if default.name != REFERENCE {
        cases.extend(with_nets.iter().map(|own| case(own, ON_CPU[0], &[])));
        cases.extend(with_nets.iter().map(|own| case(own, default, &[])));
    }
    let mut compared = Vec::new();
    for setting in others {
        let is_telling = |own: &&&(Kind, Manifest)| {
            let (kind, manifest) = **own;
            let stated = manifest.task.net().map(NetTask::precision);
            match setting.precision() {
                Some(precision) => stated.is_some_and(|stated| stated != precision),
                None => {
                    (kind.has_sizes() || !setting.is_about_batches())
                        && !setting.repeats_default(*kind)
                }
            }
        };
        compared.extend(with_nets.iter().filter(is_telling).map(|own| (*own, *setting)));
    }
    cases.extend(
        compared.iter().map(|(own, setting)| case(own, *setting, &first[..first.len().min(1)])),
    );
    cases.extend(measured.iter().map(|own| case(own, default, &loads)));
    cases.extend(compared.iter().map(|(own, setting)| case(own, *setting, &loads)));
    Ok(cases)
}

/// Returns the kind of work that a model of a task is measured at; `None` for a net that only assists.
fn kind_of(task: &Task) -> Option<Kind> {
    match task {
        Task::Segmentation(_) => Some(Kind::RemoveBg),
        // One that keeps the size is measured by the tool it assists.
        Task::Upscale(contract) => (contract.upscale.scale > 1).then_some(Kind::Upscale),
        Task::Exemplar(_) | Task::Fill(_) | Task::SdInpaint(_) | Task::Flux2Klein(_) => {
            Some(Kind::Fix)
        }
        Task::SegmentAnything(_) => Some(Kind::Click),
        Task::Safety(_) => None,
    }
}

const fn runs_a_net(task: &Task) -> bool {
    !matches!(task, Task::Exemplar(_))
}

/// Returns the tool that measures a model with sizes; `None` for others. An upscaler makes 4X if it can.
pub fn tool_of(task: &Task) -> Option<Tool> {
    match task {
        Task::Segmentation(_) => Some(Tool::RemoveBackground),
        Task::Upscale(contract) => {
            let factors = [Factor::X4, Factor::X2].into_iter();
            let mut made = factors.filter(|factor| contract.can_make(factor.get().into()).is_ok());
            made.next().map(Tool::Upscale)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases_on(device: Device) -> Vec<Case> {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tiny");
        cases(&models, &Bindings::read(&models).unwrap(), device, &[1, 12, 24]).unwrap()
    }

    #[test]
    fn every_model_comes_once_before_any_comes_again() {
        for device in [Device::Cpu, Device::Cuda] {
            let cases = cases_on(device);
            let first = cases[0].setting;
            let models = cases
                .iter()
                .take_while(|case| case.setting == first && case.loads.len() <= FIRST_LOADS);
            let mut names: Vec<_> = models.map(|case| case.model.clone()).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert!(count > 1 && names.len() == count, "{names:?}");
        }
    }

    #[test]
    fn a_net_is_measured_in_the_precision_that_its_manifest_does_not_state() {
        let cases = cases_on(Device::Cuda);
        let of = |precision| {
            let own = cases.iter().filter(move |case| case.setting.precision() == Some(precision));
            own.map(|case| case.model.as_str()).collect::<Vec<_>>()
        };
        // Each with one load, then with all.
        assert_eq!(of(Precision::F16), ["segment", "upscale", "segment", "upscale"]);
        assert!(of(Precision::F32).is_empty());
    }

    #[test]
    fn every_setting_is_measured_before_any_gets_all_loads() {
        for device in [Device::Cpu, Device::Cuda] {
            let cases = cases_on(device);
            let full = cases.iter().position(|case| case.loads.len() > FIRST_LOADS).unwrap();
            let names = |cases: &[Case]| {
                let mut names: Vec<_> = cases.iter().map(|case| case.setting.name).collect();
                names.sort_unstable();
                names.dedup();
                names
            };
            assert_eq!(names(&cases[..full]), names(&cases));
        }
    }

    #[test]
    fn engines_are_measured_only_with_what_builds_them() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libonnxruntime.so");
        let possible = || {
            let settings = ON_CUDA.iter().filter(|setting| setting.is_possible(&library));
            settings.map(|setting| setting.name).collect::<Vec<_>>()
        };
        assert!(!possible().contains(&"TensorRT") && possible().contains(&"CUDA"));
        std::fs::write(folder.path().join(TENSORRT_LIBRARY), "").unwrap();
        assert!(possible().contains(&"TensorRT"));
    }

    #[test]
    fn a_gpu_is_compared_with_the_cpu() {
        let cases = cases_on(Device::Cuda);
        let reference = cases.iter().position(|case| case.setting.name == REFERENCE).unwrap();
        assert!(cases[reference].loads.is_empty());
        let name = &cases[reference].model;
        let later = cases[reference..].iter().filter(|case| case.model == *name);
        let later: Vec<_> =
            later.map(|case| (case.setting.name, case.loads.is_empty())).take(3).collect();
        assert_eq!(later, [(REFERENCE, true), ("CUDA", true), (ON_CUDA[1].name, false)]);
    }
}
