//! The noise schedule of a net's training, rounded where torch rounds.

use std::f64::consts::FRAC_PI_2;

/// How betas grow with the timestep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    Linear,
    /// Their square roots grow linearly, as in Stable Diffusion's training.
    ScaledLinear,
    /// By the squared cosine of arXiv 2102.09672, at most 0.999.
    SquaredCosine,
}

impl Schedule {
    pub const ALL: [Self; 3] = [Self::Linear, Self::ScaledLinear, Self::SquaredCosine];

    /// Returns diffusers' name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::ScaledLinear => "scaled_linear",
            Self::SquaredCosine => "squaredcos_cap_v2",
        }
    }
}

/// Returns the betas of a schedule. The cosine ignores `start` and `end`.
pub fn of_schedule(schedule: Schedule, start: f64, end: f64, count: usize) -> Vec<f32> {
    match schedule {
        Schedule::Linear => linspace(start as f32, end as f32, count),
        Schedule::ScaledLinear => {
            let roots = linspace(start.sqrt() as f32, end.sqrt() as f32, count);
            roots.into_iter().map(|root| root * root).collect()
        }
        Schedule::SquaredCosine => {
            let signal = |index: usize| {
                let time = index as f64 / count as f64;
                ((time + 0.008) / 1.008 * FRAC_PI_2).cos().powi(2)
            };
            (0..count)
                .map(|index| (1.0 - signal(index + 1) / signal(index)).min(0.999) as f32)
                .collect()
        }
    }
}

/// Computes `torch.linspace`, which works from both ends to the middle.
fn linspace(start: f32, end: f32, count: usize) -> Vec<f32> {
    let step = (end - start) / (count.max(2) - 1) as f32;
    (0..count)
        .map(|index| {
            if index < count / 2 {
                step.mul_add(index as f32, start)
            } else {
                step.mul_add(-((count - 1 - index) as f32), end)
            }
        })
        .collect()
}

/// Returns the products of all `1 - beta` up to each timestep. With `zero_snr` they are rescaled so that the last is 0
/// (algorithm 1 of arXiv 2305.08891).
pub fn cumulative_alphas(betas: &[f32], zero_snr: bool) -> Vec<f32> {
    let products = cumulative_product(betas.iter().map(|beta| 1.0 - beta));
    match (products.first(), products.last()) {
        (Some(first), Some(last)) if zero_snr => {
            let (first, last) = (first.sqrt(), last.sqrt());
            let scale = first / (first - last);
            let rescaled: Vec<f32> =
                products.iter().map(|alpha| ((alpha.sqrt() - last) * scale).powi(2)).collect();
            // diffusers converts back to betas and multiplies again, which rounds again.
            let ratios = rescaled.windows(2).map(|pair| pair[1] / pair[0]);
            let alphas = rescaled.first().copied().into_iter().chain(ratios);
            cumulative_product(alphas.map(|alpha| 1.0 - (1.0 - alpha)))
        }
        _ => products,
    }
}

/// Multiplies as torch does: in 64 bits, with each product rounded to 32.
fn cumulative_product(factors: impl Iterator<Item = f32>) -> Vec<f32> {
    factors
        .scan(1.0_f64, |product, factor| {
            *product *= f64::from(factor);
            Some(*product as f32)
        })
        .collect()
}

/// Returns the ratio of noise to signal at each timestep. With `zero_snr` the last one would be infinite; diffusers
/// replaces its alpha by 2^-24, the smallest number in half precision.
pub fn sigmas(betas: &[f32], zero_snr: bool) -> Vec<f64> {
    let alphas = cumulative_alphas(betas, zero_snr);
    let mut sigmas: Vec<f64> =
        alphas.into_iter().map(|alpha| f64::from(((1.0 - alpha) / alpha).sqrt())).collect();
    if let (true, Some(last)) = (zero_snr, sigmas.last_mut()) {
        // The root of 2^24 - 1 lies between two 32-bit numbers; torch rounds to this one.
        *last = 4096.0;
    }
    sigmas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_diffusions_sigmas_are_the_published_ones() {
        let betas = of_schedule(Schedule::ScaledLinear, 0.00085, 0.012, 1000);
        let sigmas = sigmas(&betas, false);
        assert!((sigmas[0] - 0.0292).abs() < 1e-4, "{}", sigmas[0]);
        assert!((sigmas[999] - 14.6146).abs() < 1e-4, "{}", sigmas[999]);
    }

    #[test]
    fn rescaled_betas_end_without_signal_and_start_as_before() {
        let betas = of_schedule(Schedule::Linear, 0.0001, 0.02, 1000);
        let (plain, rescaled) = (cumulative_alphas(&betas, false), cumulative_alphas(&betas, true));
        assert!((plain[0] - rescaled[0]).abs() < 1e-6);
        assert!(rescaled[999].abs() < 1e-12, "{}", rescaled[999]);
        assert!((sigmas(&betas, true)[999] - 4096.0).abs() < 1e-9);
    }

    #[test]
    fn the_cosine_is_capped() {
        let betas = of_schedule(Schedule::SquaredCosine, 0.0, 0.0, 1000);
        assert!((betas[999] - 0.999).abs() < 1e-6 && betas[0] < 1e-4);
    }
}
