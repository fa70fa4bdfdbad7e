//! Where the operators of a net run, read from ONNX Runtime's profile of one run.

use std::collections::BTreeMap;
use std::fmt;

use ort::ep::{self, ExecutionProvider};
use serde::Deserialize;

/// The suffix of the names of events that record one run of an operator.
const OPERATOR_RUN: &str = "_kernel_time";

/// The operators that ONNX Runtime uses to copy a tensor between a GPU and the CPU.
const COPIES: [&str; 2] = ["MemcpyFromHost", "MemcpyToHost"];

/// The operators of one run, by execution provider.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// How often each operator ran, by the provider's name and its own.
    operators: BTreeMap<String, BTreeMap<String, usize>>,
    copies: usize,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(default)]
    args: Facts,
}

#[derive(Default, Deserialize)]
struct Facts {
    provider: Option<String>,
    op_name: Option<String>,
}

impl Placement {
    /// Reads a profile, a list of events in JSON.
    ///
    /// # Errors
    /// If it is no such list, or has no operator.
    pub(super) fn read(profile: &[u8]) -> Result<Self, String> {
        let events: Vec<Event> =
            serde_json::from_slice(profile).map_err(|error| error.to_string())?;
        let mut placement = Self::default();
        for Event { name, args } in events {
            let Facts { provider: Some(provider), op_name: Some(operator) } = args else {
                continue;
            };
            if !name.ends_with(OPERATOR_RUN) {
                continue;
            }
            if COPIES.contains(&operator.as_str()) {
                placement.copies += 1;
            } else {
                let own = placement.operators.entry(provider).or_default();
                *own.entry(operator).or_default() += 1;
            }
        }
        if placement.operators.is_empty() {
            return Err("the profile has no operators".to_owned());
        }
        Ok(placement)
    }
}

impl fmt::Display for Placement {
    /// Such as `216 operators on CUDA, 2 on CPU (Resize, TopK), 4 copies between them`. Names the operators only where
    /// some run on the CPU that a GPU does not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_on_cpu = |provider: &str| provider == ep::CPU::NAME;
        let mut providers: Vec<_> = self.operators.iter().collect();
        // The CPU last.
        providers.sort_by_key(|(provider, _)| is_on_cpu(provider));
        for (at, (provider, operators)) in providers.iter().enumerate() {
            let short = provider.trim_end_matches("ExecutionProvider");
            match (at, operators.values().sum::<usize>()) {
                (0, 1) => write!(f, "1 operator on {short}")?,
                (0, count) => write!(f, "{count} operators on {short}")?,
                (_, count) => write!(f, ", {count} on {short}")?,
            }
            if providers.len() > 1 && is_on_cpu(provider) {
                let names: Vec<_> = operators.keys().map(String::as_str).collect();
                write!(f, " ({})", names.join(", "))?;
            }
        }
        match self.copies {
            0 => Ok(()),
            1 => f.write_str(", 1 copy between them"),
            copies => write!(f, ", {copies} copies between them"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(runs: &[(&str, &str)]) -> Result<Placement, String> {
        let session = json!({"cat": "Session", "name": "model_run", "args": {}});
        let runs = runs.iter().map(|(provider, operator)| {
            let args = json!({"provider": provider, "op_name": operator, "node_index": "1"});
            json!({"cat": "Node", "name": "a_kernel_time", "args": args})
        });
        let events: Vec<_> = std::iter::once(session).chain(runs).collect();
        Placement::read(&serde_json::to_vec(&events).unwrap())
    }

    #[test]
    fn what_the_cpu_runs_for_a_gpu_is_named() {
        let (gpu, cpu) = ("CUDAExecutionProvider", "CPUExecutionProvider");
        let all = [(gpu, "Conv"), (cpu, "Resize"), (gpu, "Conv"), (cpu, "TopK"), (cpu, "TopK")];
        let copies = [(gpu, "MemcpyToHost"), (gpu, "MemcpyFromHost")];
        let placement = read(&[all.as_slice(), &copies].concat()).unwrap().to_string();
        assert_eq!(
            placement,
            "2 operators on CUDA, 3 on CPU (Resize, TopK), 2 copies between them"
        );
        assert_eq!(read(&all[..1]).unwrap().to_string(), "1 operator on CUDA");
        let on_cpu = read(&[(cpu, "Conv"), (cpu, "Relu")]).unwrap();
        assert_eq!(on_cpu.to_string(), "2 operators on CPU");
    }

    #[test]
    fn a_profile_without_operators_is_an_error() {
        assert!(read(&[]).unwrap_err().contains("no operators"));
        assert!(Placement::read(b"[{").is_err());
    }
}
