//! Chooses the model for a run.

use anyhow::bail;
use retouch_catalog::{FixMode, Tier, Tool};
use retouch_inference::bindings::{Demand, Scope};
use retouch_inference::manifest::Task;
use retouch_inference::registry::{ModelHandle, Registry};

/// Loads the named model, or the one bound to the tool for paid jobs.
pub async fn choose_model(
    registry: &Registry,
    name: Option<&str>,
    tool: Tool,
) -> anyhow::Result<ModelHandle> {
    Ok(match name {
        Some(name) => named_model(registry, name, tool).await?,
        None => registry.model_for(Demand { tool, tier: Tier::Paid }).await?,
    })
}

/// Loads the named model. Checks first that it can serve the tool, before reading its weights.
pub async fn named_model(
    registry: &Registry,
    name: &str,
    tool: Tool,
) -> anyhow::Result<ModelHandle> {
    let task = registry.manifest(name)?.task;
    if let Err(reason) = task.can_serve(tool) {
        bail!("{name}: {reason}");
    }
    Ok(registry.load(name).await?)
}

/// Loads the named model of scale 1, or the model that is bound to enhance or restore for paid jobs.
pub async fn choose_restorer(
    registry: &Registry,
    name: Option<&str>,
) -> anyhow::Result<ModelHandle> {
    let can_restore = |name: &str| match registry.manifest(name)?.task {
        Task::Upscale(contract) => Ok::<_, anyhow::Error>(contract.can_make(1)),
        other => Ok(Err(format!("its task is {}", other.as_str()))),
    };
    if let Some(name) = name {
        return match can_restore(name)? {
            Ok(()) => Ok(registry.load(name).await?),
            Err(reason) => bail!("{name}: {reason}; --factor 1 takes an upscaler of scale 1"),
        };
    }
    let tools = [FixMode::Enhance, FixMode::Restore].map(Tool::MagicFix);
    for (Scope { demand, .. }, name) in registry.served() {
        if demand.tier == Tier::Paid && tools.contains(&demand.tool) && can_restore(&name)?.is_ok()
        {
            return Ok(registry.model_for(demand).await?);
        }
    }
    bail!(
        "no model of scale 1 is bound to enhance or restore of Magic Fix on {}; bind one in tools.toml, or name one \
         with --model",
        registry.device()
    )
}
