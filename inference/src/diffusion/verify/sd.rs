//! Compares Stable Diffusion with its recordings.

use std::ops::ControlFlow;
use std::path::Path;

use ndarray::{ArrayViewD, Axis, Ix4, s};
use serde_json::Value;

use super::reference::{Case, Reference, Run};
use super::report::{CaseReport, Check, failed, values};
use crate::diffusion::error::DiffusionError;
use crate::diffusion::json;
use crate::diffusion::noise::RecordedNoise;
use crate::diffusion::picture;
use crate::diffusion::request::{MaskToLatents, Request};
use crate::diffusion::scheduler;
use crate::diffusion::scheduler_config::{ConfigError, SchedulerConfig, SchedulerName};
use crate::diffusion::sd_inpaint::{EmbeddedTexts, Guide, SdInpaint};
use crate::session::Runtime;

pub(super) fn verify(
    model: &Path,
    reference: &Reference<'_>,
    runtime: &Runtime,
) -> Result<Vec<CaseReport>, DiffusionError> {
    let cases = reference.cases()?;
    // Each case brings its own scheduler, so the model's scheduler need not be implemented.
    let mut model = match cases.iter().find_map(|case| scheduler_of(case).ok()?.ok()) {
        Some(scheduler) => SdInpaint::open_with(model, scheduler, runtime)?,
        None => SdInpaint::open(model, runtime)?,
    };
    let recorded = reference.meta.get("vae_scaling_factor").and_then(Value::as_f64);
    if let Some(factor) =
        recorded.filter(|factor| (factor / f64::from(model.scaling_factor()) - 1.0).abs() > 1e-6)
    {
        let own = model.scaling_factor();
        let text = format!("vae_scaling_factor is {factor}, but the model's is {own}");
        return Err(reference.invalid(&text));
    }
    let mut reports = parts(&mut model, reference)?;
    let mut draws = vec![reference.array("init_noise.npy")?];
    // Without this file, only the cases that add noise fail.
    if let Some(steps) = reference.optional_array("step_noise.npy")? {
        draws.extend(steps.outer_iter().map(|draw| draw.to_owned()));
    }
    for case in cases {
        reports.push(run(&mut model, &case, RecordedNoise::new(draws.clone()))?);
    }
    Ok(reports)
}

fn run(
    model: &mut SdInpaint,
    case: &Case<'_>,
    mut noise: RecordedNoise,
) -> Result<CaseReport, DiffusionError> {
    let request = request(case)?;
    let config = match scheduler_of(case)? {
        Ok(config) => config,
        Err(reason) => return Ok(case.failed(&reason)),
    };
    let first = scheduler::start_index(request.steps, request.strength);
    let schedule = match scheduler::schedule(&config, request.steps, request.eta, first) {
        Ok(schedule) => schedule,
        Err(error) => return Ok(case.failed(&error)),
    };
    model.set_scheduler(config);
    let mut latents = Vec::new();
    let generated = model.inpaint(&request, &mut noise, &mut |state| {
        latents.push(state.latents.to_owned());
        ControlFlow::Continue(())
    });
    match generated {
        Ok(generated) => case.compare(&Run {
            latents,
            generated,
            timesteps: schedule.timesteps(),
            sigmas: schedule.sigmas(),
        }),
        Err(error) => Ok(case.failed(&error)),
    }
}

/// Returns the scheduler of a recording, or why it cannot be repeated.
fn scheduler_of(case: &Case<'_>) -> Result<Result<SchedulerConfig, String>, DiffusionError> {
    let class = case.field("class")?.as_str().ok_or_else(|| case.invalid_field("class"))?;
    let config = case.field("config")?.as_object().ok_or_else(|| case.invalid_field("config"))?;
    Ok(match SchedulerConfig::of_class(class, config) {
        Ok(config) if config.solver.name().class() == class => Ok(config),
        Ok(config) => Err(format!(
            "recorded with {class}, but Retouch runs {name} in its place, which takes other steps; record the case with \
             {ours}.from_config(pipeline.scheduler.config)",
            name = config.solver.name(),
            ours = config.solver.name().class()
        )),
        Err(ConfigError::Class(class)) => Err(format!(
            "recorded with {class}, which is not implemented; record the case with one of {}",
            SchedulerName::ALL.map(SchedulerName::class).join(", ")
        )),
        Err(error) => Err(error.to_string()),
    })
}

fn request(case: &Case<'_>) -> Result<Request, DiffusionError> {
    let text = |name: &str| {
        let text = case.fields.get(name).or_else(|| case.reference.meta.get(name));
        text.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| case.invalid_field(name))
    };
    Ok(Request {
        image: case.reference.image.clone(),
        mask: case.reference.mask.clone(),
        prompt: text("prompt")?,
        negative_prompt: text("negative_prompt")?,
        steps: case.count("steps")?,
        guidance: case.number("guidance")? as f32,
        strength: case.number("strength")?,
        // The default of the pipeline, which overrides TCD's.
        eta: if case.fields.get("eta").is_some() { case.number("eta")? } else { 0.0 },
        mask_to_latents: MaskToLatents::Nearest,
        reference: None,
    })
}

/// Compares tokens, embeddings, latents and one run of the UNet, if they were recorded.
fn parts(
    model: &mut SdInpaint,
    reference: &Reference<'_>,
) -> Result<Vec<CaseReport>, DiffusionError> {
    let text = |name: &str| reference.meta.get(name).and_then(Value::as_str).unwrap_or_default();
    let (negative, prompt) = (text("negative_prompt"), text("prompt"));
    let mut reports = Vec::new();
    let cases = reference.folder.join("tokenizer_cases.json");
    if cases.is_file() {
        reports.push(token_cases(model, &cases)?);
    }
    let ids = [model.tokens(negative)?, model.tokens(prompt)?];
    for (encoder, name) in ["input_ids", "input_ids_2"].into_iter().enumerate() {
        let Some(recorded) = reference.optional_array(&format!("{name}.npy"))? else { continue };
        let made = ids.iter().filter_map(|texts| texts.get(encoder));
        let rows = recorded.outer_iter().zip(made);
        let equal = rows.filter(|(row, tokens)| same_ids(row.iter(), tokens)).count();
        let check = Check::Tokens { equal, total: recorded.len_of(Axis(0)).max(ids.len()) };
        reports.push(CaseReport::new(name, vec![check]));
    }
    let embedded = model.embed(Some(negative), prompt)?;
    if let Some(recorded) = reference.optional_array("prompt_embeds.npy")? {
        reports.push(values("prompt_embeds", &embedded.states.view(), &recorded));
    }
    if let Some(recorded) = reference.optional_array("pooled_prompt_embeds.npy")? {
        const NAME: &str = "pooled_prompt_embeds";
        reports.push(match &embedded.pooled {
            Some(pooled) => values(NAME, &pooled.view(), &recorded),
            None => failed(NAME, "the model is not one of SDXL, so it has no pooled output"),
        });
    }
    let request = Request {
        image: reference.image.clone(),
        mask: reference.mask.clone(),
        prompt: String::new(),
        negative_prompt: String::new(),
        steps: 1,
        guidance: 1.0,
        strength: 1.0,
        eta: 0.0,
        mask_to_latents: MaskToLatents::Nearest,
        reference: None,
    };
    request.check(model.size_multiple())?;
    let fixed = model.fixed_channels(&request)?;
    if let Some(recorded) = reference.optional_array("mask_latents.npy")? {
        let mask = fixed.slice(s![.., ..1, .., ..]);
        reports.push(values("mask_latents", &mask.into_dyn(), &recorded));
    }
    if let Some(recorded) = reference.optional_array("masked_image_latents.npy")? {
        let kept = fixed.slice(s![.., 1.., .., ..]);
        reports.push(values("masked_image_latents", &kept.into_dyn(), &recorded));
    }
    if let Some(recorded) = reference.optional_array("image_latents.npy")? {
        let image = model.encode(&picture::to_tensor(&reference.image))?;
        reports.push(values("image_latents", &image.view().into_dyn(), &recorded));
    }
    if let Some(recorded) = reference.optional_array("unet_t501.npy")? {
        let noise = reference.array("init_noise.npy")?;
        let embedded = of_prompt(embedded);
        reports.push(match noise.into_dimensionality::<Ix4>() {
            Ok(noise) => {
                let size = request.mask.dim();
                let guide = Guide { texts: &embedded, guidance: 1.0, fixed: &fixed };
                let mut condition = model.condition(&[guide], size)?;
                let made = model.predict(&[noise], 501.0, &mut condition)?.remove(0)?;
                values("unet_t501", &made.view().into_dyn(), &recorded)
            }
            Err(error) => failed("unet_t501", &error),
        });
    }
    Ok(reports)
}

/// Returns the row of the prompt alone.
fn of_prompt(texts: EmbeddedTexts) -> EmbeddedTexts {
    let last = |rows: ArrayViewD<'_, f32>| rows.slice_axis(Axis(0), (1..2).into()).to_owned();
    EmbeddedTexts {
        states: last(texts.states.view()),
        pooled: texts.pooled.map(|pooled| last(pooled.view())),
        cut: texts.cut,
    }
}

fn token_cases(model: &SdInpaint, file: &Path) -> Result<CaseReport, DiffusionError> {
    let cases = json::read(file)?;
    let cases = cases.as_array().ok_or_else(|| DiffusionError::file(file, "not a JSON list"))?;
    let mut equal = 0;
    for case in cases {
        let text = case.get("text").and_then(Value::as_str);
        let ids = case.get("ids").and_then(Value::as_array);
        let (Some(text), Some(ids)) = (text, ids) else {
            return Err(DiffusionError::file(file, "a case has no `text` or no `ids`"));
        };
        let made = model.tokens(text)?;
        let made = made.first().into_iter().flatten();
        equal += usize::from(ids.iter().map(Value::as_i64).eq(made.copied().map(Some)));
    }
    let check = Check::Tokens { equal, total: cases.len() };
    Ok(CaseReport::new("tokenizer_cases", vec![check]))
}

fn same_ids<'a>(recorded: impl Iterator<Item = &'a f32>, made: &[i64]) -> bool {
    recorded.map(|id| *id as i64).eq(made.iter().copied())
}
