//! The comparisons of a case, their differences, and whether they are within tolerance.

use std::fmt;

use ndarray::{Array3, ArrayD, ArrayViewD, Axis};

use super::precision::Tolerance;

/// Maximum accepted difference of a timestep. Most are whole numbers; the others were recorded in 32 bits.
const TIMESTEP_TOLERANCE: f64 = 1e-3;

/// Maximum accepted difference of a sigma, relative to the largest sigma. No net computes them, so the model's
/// precision does not matter.
const SIGMA_TOLERANCE: f64 = 1e-4;

#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The latents after each step.
    Latents {
        /// The difference in the worst step.
        difference: f64,
        /// The worst step, from 0.
        step: usize,
        steps: usize,
    },
    /// The output of a net, compared like latents.
    Values {
        difference: f64,
    },
    Image {
        /// The largest difference, on a scale of 255.
        difference: u8,
    },
    Timesteps {
        equal: bool,
    },
    /// The sigmas, compared like latents.
    Sigmas {
        difference: f64,
    },
    /// The token ids of texts.
    Tokens {
        /// The number of texts with the recorded ids.
        equal: usize,
        total: usize,
    },
    /// The case could not be run or compared.
    Failed(String),
}

impl Check {
    /// Returns whether the difference is within tolerance.
    pub fn passed(&self, tolerance: Tolerance) -> bool {
        match self {
            Self::Latents { difference, .. } | Self::Values { difference } => {
                *difference <= tolerance.latents
            }
            Self::Image { difference } => *difference <= tolerance.image,
            Self::Sigmas { difference } => *difference <= SIGMA_TOLERANCE,
            Self::Timesteps { equal } => *equal,
            Self::Tokens { equal, total } => equal == total && *total > 0,
            Self::Failed(_) => false,
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latents { difference, step, steps } => {
                write!(f, "latents {difference:.1e} (step {} of {steps})", step + 1)
            }
            Self::Values { difference } => write!(f, "values {difference:.1e}"),
            Self::Image { difference } => write!(f, "image {difference}/255"),
            Self::Timesteps { equal: true } => write!(f, "timesteps equal"),
            Self::Timesteps { equal: false } => write!(f, "timesteps DIFFER"),
            Self::Sigmas { difference } => write!(f, "sigmas {difference:.1e}"),
            Self::Tokens { equal, total } => {
                write!(f, "{equal} of {total} texts have the same ids")
            }
            Self::Failed(reason) => write!(f, "{reason}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CaseReport {
    /// The case's name in `meta.json`, or the name of the compared file.
    pub name: String,
    pub checks: Vec<Check>,
    pub tolerance: Tolerance,
}

impl CaseReport {
    /// Creates a report with the tolerance of 32 bits.
    pub(super) fn new(name: &str, checks: Vec<Check>) -> Self {
        Self { name: name.to_owned(), checks, tolerance: Tolerance::default() }
    }

    pub fn passed(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed(self.tolerance))
    }

    /// Returns the largest relative difference of latents or values.
    pub fn worst_difference(&self) -> f64 {
        let differences = self.checks.iter().map(|check| match check {
            Check::Latents { difference, .. } | Check::Values { difference } => *difference,
            _ => 0.0,
        });
        differences.fold(0.0, f64::max)
    }
}

impl fmt::Display for CaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = if self.passed() { "ok    " } else { "FAILED" };
        write!(f, "{result} {:<32}", self.name)?;
        for (index, check) in self.checks.iter().enumerate() {
            write!(f, "{}{check}", if index == 0 { " " } else { ", " })?;
        }
        Ok(())
    }
}

/// Returns the report of a case that could not be run or compared.
pub(super) fn failed(name: &str, reason: &(impl ToString + ?Sized)) -> CaseReport {
    CaseReport::new(name, vec![Check::Failed(reason.to_string())])
}

/// Returns the report of one comparison of values.
pub(super) fn values(name: &str, made: &ArrayViewD<'_, f32>, recorded: &ArrayD<f32>) -> CaseReport {
    let check = if made.shape() == recorded.shape() {
        Check::Values { difference: relative_difference(made.iter(), recorded) }
    } else {
        Check::Failed(format!("the shape is {:?} instead of {:?}", made.shape(), recorded.shape()))
    };
    CaseReport::new(name, vec![check])
}

/// Returns the largest difference, relative to the largest recorded value; NaN if any value is NaN.
fn relative_difference<'a>(
    made: impl IntoIterator<Item = &'a f32>,
    recorded: impl IntoIterator<Item = &'a f32>,
) -> f64 {
    let mut worst = (0.0_f64, 0.0_f64);
    for (made, recorded) in made.into_iter().zip(recorded) {
        let (made, recorded) = (f64::from(*made), f64::from(*recorded));
        let difference = (made - recorded).abs();
        if difference.is_nan() {
            return f64::NAN;
        }
        worst = (worst.0.max(difference), worst.1.max(recorded.abs()));
    }
    if worst.0 > 0.0 { worst.0 / worst.1 } else { 0.0 }
}

pub(super) fn compare_latents(made: &[ArrayD<f32>], recorded: &ArrayD<f32>) -> Check {
    let steps: Vec<_> = recorded.outer_iter().collect();
    if made.len() != steps.len() || steps.is_empty() {
        let text = format!("the run has {} steps, the recording {}", made.len(), steps.len());
        return Check::Failed(text);
    }
    let mut worst = Check::Latents { difference: 0.0, step: 0, steps: steps.len() };
    for (step, (made, recorded)) in made.iter().zip(&steps).enumerate() {
        // The only item of the batch.
        let made = made.index_axis(Axis(0), 0);
        if made.shape() != recorded.shape() {
            let text =
                format!("latents have shape {:?} instead of {:?}", made.shape(), recorded.shape());
            return Check::Failed(text);
        }
        let found = relative_difference(made.iter(), recorded);
        let Check::Latents { difference, .. } = worst else { break };
        if found.is_nan() || found > difference {
            worst = Check::Latents { difference: found, step, steps: steps.len() };
        }
        if found.is_nan() {
            break;
        }
    }
    worst
}

pub(super) fn compare_images(made: &Array3<f32>, recorded: &ArrayD<f32>) -> Check {
    if made.shape() != recorded.shape() {
        return Check::Failed(format!(
            "the image has shape {:?} instead of {:?}",
            made.shape(),
            recorded.shape()
        ));
    }
    let byte = |value: &f32| (value * 255.0).round() as u8;
    let differences = made.iter().zip(recorded).map(|(made, recorded)| {
        if made.is_finite() && recorded.is_finite() {
            byte(made).abs_diff(byte(recorded))
        } else {
            255
        }
    });
    Check::Image { difference: differences.max().unwrap_or(255) }
}

/// The recording may omit the timesteps that its strength skips.
pub(super) fn compare_timesteps(made: &[f64], recorded: &[f64]) -> Check {
    let equal = made.len() >= recorded.len()
        && !recorded.is_empty()
        && made[made.len() - recorded.len()..]
            .iter()
            .zip(recorded)
            .all(|(made, recorded)| (made - recorded).abs() <= TIMESTEP_TOLERANCE);
    Check::Timesteps { equal }
}

pub(super) fn compare_sigmas(made: &[f64], recorded: &[f64]) -> Check {
    if made.len() != recorded.len() {
        return Check::Failed(format!("{} sigmas instead of {}", made.len(), recorded.len()));
    }
    let largest = recorded.iter().fold(0.0_f64, |largest, sigma| largest.max(sigma.abs()));
    let differences = made.iter().zip(recorded).map(|(made, recorded)| (made - recorded).abs());
    Check::Sigmas { difference: differences.fold(0.0, f64::max) / largest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_step_is_found() {
        let recorded = ArrayD::from_shape_fn(vec![3, 1, 2, 2], |at| (at[0] + at[3] + 1) as f32);
        let mut made: Vec<_> =
            recorded.outer_iter().map(|step| step.to_owned().insert_axis(Axis(0))).collect();
        assert!(compare_latents(&made, &recorded).passed(Tolerance::default()));
        made[1][[0, 0, 1, 1]] += 0.01;
        let check = compare_latents(&made, &recorded);
        assert!(!check.passed(Tolerance::default()));
        assert!(check.to_string().contains("step 2 of 3"), "{check}");
        made[0][[0, 0, 1, 1]] = f32::NAN;
        assert!(!compare_latents(&made, &recorded).passed(Tolerance::default()));
        assert!(!compare_latents(&made[..2], &recorded).passed(Tolerance::default()));
    }

    #[test]
    fn skipped_timesteps_may_be_missing_in_the_recording() {
        let made = [801.0, 601.0, 401.0];
        assert!(compare_timesteps(&made, &made).passed(Tolerance::default()));
        assert!(compare_timesteps(&made, &made[1..]).passed(Tolerance::default()));
        assert!(!compare_timesteps(&made, &made[..2]).passed(Tolerance::default()));
        assert!(!compare_timesteps(&made, &[]).passed(Tolerance::default()));
    }
}
