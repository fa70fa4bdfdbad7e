//! The measurements of `bench --all` so far, in a file that a later run continues.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::super::card::CardUse;
use super::plan::{Kind, Load};

/// The machine and the programs that everything in a record was measured with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The device, with the GPU's driver or the CPU's cores.
    pub device: String,
    /// The CPU and its cores.
    pub cpu: String,
    /// The name of ONNX Runtime's library, which holds its version.
    pub onnxruntime: String,
    pub worker: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: Kind,
    /// The model, with the beginning of its checksum once it is known.
    pub model: String,
    pub setting: String,
    pub load: Load,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Measured(Box<Measures>),
    /// It was not measured, for this reason. A run with more time tries again.
    Skipped(String),
    /// It does not apply to this model, for this reason.
    Meaningless(String),
    /// The process failed, for this reason. A later run tries again: the program or the machine may have been fixed.
    Failed(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// How many pictures or paintings were processed.
    pub pictures: usize,
    /// Pictures or paintings per second.
    pub rate: f64,
    /// Milliseconds per megapixel of input; `None` at a single size.
    pub ms_per_megapixel: Option<f64>,
    pub steps_per_second: Option<f64>,
    /// The rate of the loaded net alone, in the unit of `rate`, or of `steps_per_second` if present.
    pub bare_rate: Option<f64>,
    /// The rate of the net with ONNX Runtime's defaults, in inputs per second, one at a time.
    pub plain_rate: Option<f64>,
    /// Maximum number of inputs that ran together.
    pub batch: Option<usize>,
    /// The share of the time in which the model ran, 0 to 1.
    pub model_share: Option<f64>,
    /// CPU-seconds per picture.
    pub cpu_seconds: f64,
    /// The median of each stage, in milliseconds.
    pub stages_ms: BTreeMap<String, f64>,
    pub card: Option<CardUse>,
    /// The peak memory of the process so far, without GPU memory.
    pub resident_mib: u64,
}

impl Measures {
    /// Returns the share of the bare net's speed that was reached.
    pub fn reached(&self) -> Option<f64> {
        Some(self.steps_per_second.unwrap_or(self.rate) / self.bare_rate?)
    }
}

/// The difference between a result and the result of the reference setting for the same picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub model: String,
    pub setting: String,
    /// The maximum difference of a sample, on a scale of 255.
    pub largest: u8,
    /// The mean difference of a sample, on a scale of 255.
    pub mean: f64,
    /// The mean difference up to which a result counts as right.
    pub tolerance: f64,
}

impl Comparison {
    pub fn is_right(&self) -> bool {
        self.mean <= self.tolerance
    }
}

/// Everything measured on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub machine: Machine,
    /// The measurements, in the order of their first attempt.
    pub entries: Vec<Entry>,
    pub comparisons: Vec<Comparison>,
}

impl Record {
    const FILE: &str = "bench.json";

    /// Reads the record in a folder, or begins one.
    ///
    /// # Errors
    /// If the record is of another machine or not readable.
    pub fn open(folder: &Path, machine: Machine) -> anyhow::Result<Self> {
        let file = folder.join(Self::FILE);
        if !file.exists() {
            return Ok(Self { machine, entries: Vec::new(), comparisons: Vec::new() });
        }
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let record: Self =
            serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        ensure!(
            record.machine == machine,
            "{} is of {}, {}; here it is {}, {}; give another folder with --out",
            file.display(),
            record.machine.device,
            record.machine.onnxruntime,
            machine.device,
            machine.onnxruntime
        );
        Ok(record)
    }

    /// Returns whether a measurement needs no further attempt.
    pub fn is_settled(&self, kind: Kind, model: &str, setting: &str, load: Load) -> bool {
        self.find(kind, model, setting, load)
            .is_some_and(|entry| !matches!(entry.outcome, Outcome::Skipped(_) | Outcome::Failed(_)))
    }

    pub fn is_compared(&self, model: &str, setting: &str) -> bool {
        self.comparisons.iter().any(|known| known.model == model && known.setting == setting)
    }

    /// Adds a comparison, in place of an earlier one.
    pub fn add_comparison(&mut self, found: Comparison) {
        self.comparisons
            .retain(|known| (&known.model, &known.setting) != (&found.model, &found.setting));
        self.comparisons.push(found);
    }

    /// Adds an entry, in place of an earlier attempt.
    pub fn add(&mut self, entry: Entry) -> &Entry {
        let is_same = |known: &Entry| {
            (known.kind, &known.model, &known.setting, known.load)
                == (entry.kind, &entry.model, &entry.setting, entry.load)
        };
        let index = self.entries.iter().position(is_same).unwrap_or(self.entries.len());
        if index == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[index] = entry;
        }
        &self.entries[index]
    }

    /// Writes the record atomically.
    pub fn save(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let file = folder.join(Self::FILE);
        let partial = folder.join("bench.json.partial");
        fs::write(&partial, serde_json::to_string_pretty(self)?)
            .and_then(|()| fs::rename(&partial, &file))
            .with_context(|| file.display().to_string())?;
        Ok(file)
    }

    fn find(&self, kind: Kind, model: &str, setting: &str, load: Load) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            entry.kind == kind
                && entry.model == model
                && entry.setting == setting
                && entry.load == load
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { megapixels: 1, in_flight: 4 };

    fn machine(device: &str) -> Machine {
        Machine {
            device: device.to_owned(),
            cpu: "a CPU".to_owned(),
            onnxruntime: "libonnxruntime.so.1".to_owned(),
            worker: "1".to_owned(),
        }
    }

    fn entry(outcome: Outcome) -> Entry {
        let (model, setting) = ("net".to_owned(), "CPU".to_owned());
        Entry { kind: Kind::Upscale, model, setting, load: LOAD, outcome }
    }

    #[test]
    fn a_later_run_goes_on_and_tries_again_what_was_skipped_or_failed() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::open(folder.path(), machine("one")).unwrap();
        record.add(entry(Outcome::Skipped("no time".to_owned())));
        assert!(!record.is_settled(Kind::Upscale, "net", "CPU", LOAD));
        record.add(entry(Outcome::Failed("no memory".to_owned())));
        assert!(!record.is_settled(Kind::Upscale, "net", "CPU", LOAD));
        record.save(folder.path()).unwrap();
        let mut record = Record::open(folder.path(), machine("one")).unwrap();
        record.add(entry(Outcome::Measured(Box::default())));
        assert_eq!(record.entries.len(), 1);
        assert!(record.is_settled(Kind::Upscale, "net", "CPU", LOAD));
        assert!(!record.is_settled(Kind::Upscale, "net", "CUDA", LOAD));
    }

    #[test]
    fn a_record_of_another_machine_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Record::open(folder.path(), machine("one")).unwrap().save(folder.path()).unwrap();
        let error = Record::open(folder.path(), machine("other")).unwrap_err().to_string();
        assert!(error.contains("is of one") && error.contains("--out"), "{error}");
    }
}
