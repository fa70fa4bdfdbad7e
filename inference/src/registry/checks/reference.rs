//! The golden step of a text-guided pipeline: its results match the reference vectors.

use std::path::Path;

use crate::diffusion::verify::{self, Verification};
use crate::registry::steps::Outcome;
use crate::session::Runtime;

/// Compares every case of a folder of reference vectors.
pub fn compare(folder: &Path, reference: &Path, runtime: &Runtime) -> Outcome<()> {
    match verify::verify(folder, reference, runtime) {
        Ok(Verification { precision, cases }) => {
            let reasons: Vec<_> =
                cases.iter().filter(|case| !case.passed()).map(ToString::to_string).collect();
            let finding =
                format!("{} reference cases, within the tolerance of {precision}", cases.len());
            Outcome { finding, reasons, value: Some(()) }
        }
        Err(error) => Outcome::refused(error.to_string()),
    }
}
