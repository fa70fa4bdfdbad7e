use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::diffusion::error::DiffusionError;
use crate::diffusion::json::read;

fn parse(class: &str, mut fields: Value) -> Result<SchedulerConfig, ConfigError> {
    // Only DDIM requires it; for the others it is neutral.
    let object = fields.as_object_mut().unwrap();
    object.entry("clip_sample").or_insert(json!(false));
    SchedulerConfig::of_class(class, object)
}

const DDIM: &str = "DDIMScheduler";
const DPM: &str = "DPMSolverMultistepScheduler";
const PNDM: &str = "PNDMScheduler";
const EULER: &str = "EulerDiscreteScheduler";
const ANCESTRAL: &str = "EulerAncestralDiscreteScheduler";
const LCM: &str = "LCMScheduler";
const TCD: &str = "TCDScheduler";
const UNIPC: &str = "UniPCMultistepScheduler";
const HEUN: &str = "HeunDiscreteScheduler";

#[test]
fn unsupported_settings_are_refused_by_name() {
    let every = [DDIM, DPM, PNDM, EULER, ANCESTRAL, LCM, TCD];
    let refused: &[(&[&str], &str, Value)] = &[
        (&every, "clip_sample", json!(true)),
        (&every, "thresholding", json!(true)),
        (&every, "use_exponential_sigmas", json!(true)),
        (&every, "use_beta_sigmas", json!(true)),
        (&every, "use_lu_lambdas", json!(true)),
        (&every, "use_flow_sigmas", json!(true)),
        (&every, "flow_shift", json!(3.0)),
        (&every, "use_dynamic_shifting", json!(true)),
        (&every, "time_shift_type", json!("linear")),
        (&every, "variance_type", json!("learned_range")),
        (&every, "algorithm_type", json!("dpmsolver")),
        (&every, "algorithm_type", json!("sde-dpmsolver++")),
        (&every, "solver_order", json!(3)),
        (&every, "solver_type", json!("logrho")),
        (&every, "interpolation_type", json!("log_linear")),
        (&every, "timestep_type", json!("continuous")),
        (&every, "beta_schedule", json!("sigmoid")),
        (&every, "timestep_spacing", json!("uniform")),
        (&every, "prediction_type", json!("flow_prediction")),
        (&every, "prediction_type", json!(null)),
        (&every, "timestep_spacing", json!(null)),
        (&[EULER], "sigma_min", json!(0.0)),
        (&[EULER], "sigma_max", json!(-1.0)),
        (&every, "final_sigmas_type", json!("largest")),
        (&every, "num_train_timesteps", json!(-1)),
        (&every, "num_train_timesteps", json!(10_000_000_000_u64)),
        (&every, "beta_start", json!("small")),
        (&every, "steps_offset", json!(0.5)),
        (&every, "rescale_betas_zero_snr", json!("yes")),
        (&every, "trained_betas", json!([0.1, 0.2])),
        (&every, "invert_sigmas", json!(true)),
        (&every, "something_new", json!(0.5)),
        (&[UNIPC], "solver_order", json!(4)),
        (&[UNIPC], "solver_type", json!("bh3")),
        (&[UNIPC], "predict_x0", json!(false)),
        (&[UNIPC], "disable_corrector", json!([0])),
        (&[UNIPC], "lower_order_final", json!(false)),
        (&[UNIPC], "use_flow_sigmas", json!(true)),
        (&[UNIPC], "use_beta_sigmas", json!(true)),
        (&[UNIPC], "sigma_min", json!(0.1)),
        (&[UNIPC], "algorithm_type", json!("sde-dpmsolver++")),
        (&[UNIPC], "thresholding", json!(true)),
        (&[ANCESTRAL], "prediction_type", json!("sample")),
        (&[DDIM, ANCESTRAL, LCM, TCD], "use_karras_sigmas", json!(true)),
        (&[DDIM, ANCESTRAL, LCM, TCD], "final_sigmas_type", json!("sigma_min")),
        (&[DDIM, EULER, ANCESTRAL, LCM, TCD], "euler_at_final", json!(true)),
        (&[DDIM, EULER, ANCESTRAL, LCM, TCD], "lower_order_final", json!(false)),
        (&[DDIM, EULER, ANCESTRAL, LCM, TCD], "lambda_min_clipped", json!(-5.1)),
        (&[DDIM, DPM, EULER, ANCESTRAL], "original_inference_steps", json!(100)),
        (&[DDIM, DPM, ANCESTRAL, LCM, TCD], "sigma_max", json!(10.0)),
    ];
    for (classes, field, value) in refused {
        for class in *classes {
            let error = parse(class, json!({ *field: value })).unwrap_err().to_string();
            assert!(error.contains(&format!("`{field}`")), "{class}, {field} {value}: {error}");
        }
    }
}

#[test]
fn every_unsupported_field_is_named() {
    let fields = json!({
        "algorithm_type": "dpmsolver", "solver_order": 3, "thresholding": true,
        "beta_schedule": "sigmoid", "num_train_timesteps": "many", "something_new": 0.5,
    });
    let error = parse(DPM, fields).unwrap_err();
    assert!(matches!(&error, ConfigError::Several(errors) if errors.len() == 6), "{error}");
    for field in [
        "algorithm_type",
        "solver_order",
        "thresholding",
        "beta_schedule",
        "num_train_timesteps",
        "something_new",
    ] {
        assert_eq!(error.to_string().matches(&format!("`{field}`")).count(), 1, "{error}");
    }
    assert!(parse(DDIM, json!({"clip_sample": true, "thresholding": true})).is_err_and(|error| {
        let error = error.to_string();
        error.contains("`clip_sample` is true") && error.contains("`thresholding` is true")
    }));
}

#[test]
fn an_unknown_class_is_refused_by_name() {
    let error = parse(HEUN, json!({})).unwrap_err();
    assert_eq!(error, ConfigError::Class(HEUN.to_owned()));
}

/// A model's folder with this `scheduler_config.json`.
fn model_with(scheduler: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("scheduler")).unwrap();
    let file = folder.path().join("scheduler/scheduler_config.json");
    fs::write(file, scheduler.to_string()).unwrap();
    folder
}

fn scheduler_of(shipped: &Value, name: Option<SchedulerName>) -> Result<String, DiffusionError> {
    ModelScheduler::read(model_with(shipped).path(), name).map(|scheduler| scheduler.to_string())
}

#[test]
fn what_runs_in_place_of_the_models_scheduler_is_said() {
    let shipped = |class: &str| json!({"_class_name": class, "clip_sample": false});
    let say = |class, name| scheduler_of(&shipped(class), name).unwrap();
    assert_eq!(say(DDIM, None), "scheduler ddim");
    assert_eq!(say(PNDM, None), "scheduler dpm-solver++ in place of the model's PNDMScheduler");
    let unipc = Some(SchedulerName::UniPc);
    assert_eq!(say(HEUN, unipc), format!("scheduler unipc in place of the model's {HEUN}"));
    assert_eq!(say(UNIPC, unipc), "scheduler unipc");
}

#[test]
fn the_refusal_of_a_scheduler_names_the_way_on() {
    let heun = json!({"_class_name": HEUN, "use_karras_sigmas": true});
    let error = scheduler_of(&heun, None).unwrap_err().to_string();
    for part in [HEUN, "`sampling.scheduler`", "\"ddim\"", "\"unipc\""] {
        assert!(error.contains(part), "{error}");
    }
    for class in ["FlowMatchEulerDiscreteScheduler", "EDMEulerScheduler"] {
        let other = json!({ "_class_name": class });
        let error = scheduler_of(&other, None).unwrap_err().to_string();
        assert!(error.contains(class) && !error.contains("sampling.scheduler"), "{error}");
        let error = scheduler_of(&other, Some(SchedulerName::UniPc)).unwrap_err().to_string();
        assert!(error.contains("another family"), "{error}");
    }
}

#[test]
fn a_replaced_scheduler_has_the_settings_that_diffusers_would_give_it() {
    let file = "../models/tiny/sd-inpaint/reference-more/replaced.json";
    let recorded = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let recorded = recorded.as_array().unwrap();
    let mut compared = 0;
    for case in recorded {
        let (shipped, class) =
            (case["shipped"].as_object().unwrap(), case["class"].as_str().unwrap());
        let name = SchedulerName::of_class(class).unwrap();
        let from = shipped["_class_name"].as_str().unwrap();
        let made = SchedulerConfig::replaced(from, shipped, name);
        let expected = SchedulerConfig::of_class(class, case["config"].as_object().unwrap());
        assert_eq!(made, expected, "{from} as {class}");
        made.unwrap_or_else(|error| panic!("{from} as {class}: {error}"));
        compared += 1;
    }
    assert_eq!(compared, 5 * SchedulerName::ALL.len());
}

#[test]
fn a_replaced_scheduler_keeps_the_betas_of_the_training() {
    let lcm = json!({"_class_name": LCM});
    let own = parse(LCM, json!({})).unwrap();
    let made = SchedulerConfig::replaced(LCM, lcm.as_object().unwrap(), SchedulerName::UniPc);
    assert_eq!(made.unwrap().betas, own.betas);
}

#[test]
fn ddim_in_place_of_another_scheduler_does_not_clip() {
    let euler = json!({"_class_name": EULER, "beta_schedule": "scaled_linear"});
    let made = SchedulerConfig::replaced(EULER, euler.as_object().unwrap(), SchedulerName::Ddim);
    assert_eq!(made.unwrap().solver, Solver::Ddim { set_alpha_to_one: true });
}

#[test]
fn ddim_without_clip_sample_is_refused_because_it_would_clip() {
    let error = SchedulerConfig::of_class(DDIM, &Map::new()).unwrap_err().to_string();
    assert!(error.starts_with("`clip_sample` is true"), "{error}");
    assert!(error.contains("add the field"), "{error}");
    let error = parse(DDIM, json!({"clip_sample": true})).unwrap_err().to_string();
    assert!(!error.contains("add the field"), "{error}");
}

#[test]
fn neutral_fields_are_accepted_for_every_class() {
    let neutral = json!({
        "_diffusers_version": "0.42.1", "_use_default_values": ["x"], "thresholding": false,
        "dynamic_thresholding_ratio": 0.9, "sample_max_value": 2.0, "clip_sample_range": 3.0,
        "skip_prk_steps": true, "set_alpha_to_one": false, "solver_order": 2, "solver_type": "midpoint",
        "algorithm_type": "dpmsolver++", "lower_order_final": true, "euler_at_final": false,
        "lambda_min_clipped": "-Infinity", "variance_type": null, "use_karras_sigmas": false,
        "final_sigmas_type": "zero", "interpolation_type": "linear", "timestep_type": "discrete",
        "original_inference_steps": 50, "timestep_scaling": 10.0, "flow_shift": 1,
        "time_shift_type": "exponential", "predict_x0": true, "disable_corrector": [], "solver_p": null,
        "sigma_min": null, "sigma_max": null, "trained_betas": null,
    });
    for class in [DDIM, DPM, PNDM, EULER, ANCESTRAL, LCM, TCD, UNIPC] {
        parse(class, neutral.clone()).unwrap();
    }
}

#[test]
fn absent_fields_take_the_defaults_of_their_class() {
    let ddim = parse(DDIM, json!({})).unwrap();
    assert_eq!(ddim.spacing, Spacing::Leading);
    assert_eq!(ddim.solver, Solver::Ddim { set_alpha_to_one: true });
    assert!((ddim.betas[999] - 0.02).abs() < 1e-7);
    assert_eq!(parse(DPM, json!({})).unwrap().spacing, Spacing::Linspace);
    let lcm = parse(LCM, json!({})).unwrap();
    assert!((lcm.betas[0] - 0.00085).abs() < 1e-7 && (lcm.betas[999] - 0.012).abs() < 1e-7);
}

#[test]
fn pndm_becomes_dpm_solver_with_the_same_betas() {
    let fields = json!({"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
        "skip_prk_steps": true, "set_alpha_to_one": false, "steps_offset": 1});
    assert_eq!(parse(PNDM, fields.clone()).unwrap(), parse(DPM, fields).unwrap());
}

#[test]
fn a_long_value_is_shortened_in_the_message() {
    let error = parse(DPM, json!({"trained_betas": vec![0.1; 999]})).unwrap_err().to_string();
    assert!(error.contains("`trained_betas` is [0.1") && error.len() < 200, "{error}");
}

#[test]
fn trained_betas_are_used() {
    let config =
        parse(DPM, json!({"num_train_timesteps": 3, "trained_betas": [0.1, 0.2, 0.3]})).unwrap();
    assert_eq!(config.betas, [0.1, 0.2, 0.3]);
}
