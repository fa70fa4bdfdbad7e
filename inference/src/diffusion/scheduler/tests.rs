use serde_json::{Value, json};

use super::mix::sum;
use super::*;
use crate::diffusion::scheduler_config::SchedulerConfig;

const STABLE_DIFFUSION: [(&str, f64); 2] = [("beta_start", 0.00085), ("beta_end", 0.012)];

fn config(class: &str, mut fields: Value) -> SchedulerConfig {
    let object = fields.as_object_mut().unwrap();
    object.insert("clip_sample".to_owned(), json!(false));
    object.insert("beta_schedule".to_owned(), json!("scaled_linear"));
    for (name, value) in STABLE_DIFFUSION {
        object.insert(name.to_owned(), json!(value));
    }
    SchedulerConfig::of_class(class, object).unwrap()
}

fn timesteps(class: &str, fields: Value, steps: usize) -> Vec<f64> {
    schedule(&config(class, fields), steps, 0.0, 0).unwrap().timesteps().to_vec()
}

const DPM: &str = "DPMSolverMultistepScheduler";
const UNIPC: &str = "UniPCMultistepScheduler";

#[test]
fn timesteps_equal_those_of_diffusers() {
    let leading = json!({"timestep_spacing": "leading", "steps_offset": 1});
    let trailing = json!({"timestep_spacing": "trailing"});
    let linspace = json!({"timestep_spacing": "linspace"});
    let karras = json!({"use_karras_sigmas": true});
    let table: [(&str, &Value, &[f64]); 11] = [
        ("DDIMScheduler", &leading, &[751.0, 501.0, 251.0, 1.0]),
        ("DDIMScheduler", &trailing, &[999.0, 749.0, 499.0, 249.0]),
        ("DDIMScheduler", &linspace, &[999.0, 666.0, 333.0, 0.0]),
        (DPM, &leading, &[801.0, 601.0, 401.0, 201.0]),
        (DPM, &linspace, &[999.0, 749.0, 500.0, 250.0]),
        (DPM, &karras, &[999.0, 687.0, 146.0, 0.0]),
        (UNIPC, &leading, &[801.0, 601.0, 401.0, 201.0]),
        (UNIPC, &karras, &[999.0, 687.0, 146.0, 0.0]),
        ("EulerAncestralDiscreteScheduler", &leading, &[751.0, 501.0, 251.0, 1.0]),
        ("LCMScheduler", &leading, &[999.0, 759.0, 499.0, 259.0]),
        ("TCDScheduler", &trailing, &[999.0, 759.0, 499.0, 259.0]),
    ];
    for (class, fields, expected) in table {
        assert_eq!(timesteps(class, fields.clone(), 4), expected, "{class} {fields}");
    }
}

#[test]
fn strength_skips_steps_as_in_python() {
    let cases =
        [(10, 0.6, 4), (10, 0.29, 8), (4, 0.75, 1), (4, 1.0, 0), (4, 0.2, 4), (20, 0.99, 1)];
    for (steps, strength, start) in cases {
        assert_eq!(start_index(steps, strength), start, "{steps} steps of strength {strength}");
    }
}

#[test]
fn impossible_schedules_are_refused() {
    let refused = |config: &SchedulerConfig, steps| match schedule(config, steps, 0.0, 0) {
        Ok(_) => panic!("{steps} steps are accepted"),
        Err(error) => error.to_string(),
    };
    assert!(refused(&config(DPM, json!({})), 0).contains("0 steps"));
    assert!(refused(&config(DPM, json!({})), 1001).contains("1001 steps"));
    assert!(refused(&config(DPM, json!({})), 1000).contains("too many"));
    assert!(refused(&config("LCMScheduler", json!({})), 51).contains("original_inference_steps"));
    let without_signal = json!({"rescale_betas_zero_snr": true, "timestep_spacing": "trailing"});
    let ddim = config("DDIMScheduler", without_signal);
    assert!(refused(&ddim, 5).contains("`rescale_betas_zero_snr`"));
    assert!(schedule(&ddim, 5, 0.0, 1).is_ok(), "a run that skips the first step is possible");
    let beyond = config("DDIMScheduler", json!({"steps_offset": 500}));
    assert!(refused(&beyond, 5).contains("timestep 1300"));
}

#[test]
fn a_perfect_prediction_leads_every_scheduler_to_the_picture() {
    let shape = (1, 1, 2, 2);
    let picture = Array4::from_shape_fn(shape, |(.., y, x)| y as f32 - 0.3 * x as f32);
    let noise = Array4::from_shape_fn(shape, |(.., y, x)| 0.7 * x as f32 - y as f32);
    let classes =
        ["DDIMScheduler", DPM, UNIPC, "EulerDiscreteScheduler", "LCMScheduler", "TCDScheduler"];
    for (class, prediction) in classes
        .iter()
        .flat_map(|class| [(class, "epsilon"), (class, "sample"), (class, "v_prediction")])
    {
        let config =
            config(class, json!({"prediction_type": prediction, "timestep_spacing": "trailing"}));
        let mut schedule = schedule(&config, 12, 0.0, 0).unwrap();
        let (of_picture, of_noise) = schedule.noise_mix(0);
        let mut latents = sum((of_picture, &picture), &[(of_noise, noise.view())]);
        for index in 0..12 {
            let (of_picture, of_noise) = schedule.noise_mix(index);
            let left = of_noise / of_picture.hypot(of_noise);
            let kept = (1.0 - left * left).sqrt();
            // The noise in these latents.
            let epsilon =
                sum((1.0 / of_noise, &latents), &[(-of_picture / of_noise, picture.view())]);
            let predicted = match prediction {
                "epsilon" => epsilon,
                "sample" => picture.clone(),
                _ => sum((kept, &epsilon), &[(-left, picture.view())]),
            };
            let fresh = schedule.draws_noise(index).then_some(&noise);
            latents = schedule.step(index, &latents, &predicted, fresh);
        }
        let off = (&latents - &picture).iter().fold(0.0_f32, |worst, d| worst.max(d.abs()));
        assert!(off < 0.05, "{class} {prediction}: {off}");
    }
}
