//! The text encoder of FLUX.2 \[klein\]: Qwen 3. The exported graph concatenates the hidden states of three layers.

use std::path::Path;

use ndarray::{Array2, ArrayD};
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::diffusion::error::DiffusionError;
use crate::diffusion::json;
use crate::diffusion::net::{Input, Net, Port};
use crate::diffusion::tokenizer;
use crate::session::Runtime;

/// The ids per prompt, if the graph leaves it open.
const LENGTH: usize = 512;

pub(super) struct TextEncoder {
    pub(super) net: Net,
    tokenizer: Tokenizer,
    pad: i64,
    length: usize,
    states: Port,
}

impl TextEncoder {
    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let files = folder.join("tokenizer");
        let tokenizer = tokenizer::open_json(&files)?.ok_or_else(|| {
            DiffusionError::file(&files.join("tokenizer.json"), "the file is missing")
        })?;
        let pad = pad_token(&files)?;
        let pad = tokenizer.token_to_id(&pad).map(i64::from).ok_or_else(|| {
            DiffusionError::file(&files, &format!("the vocabulary has no token {pad}"))
        })?;
        let net = Net::open(folder, "text_encoder", runtime)?;
        let ids = net.inputs().iter().find(|port| port.name == "input_ids").ok_or_else(|| {
            DiffusionError::unsupported("text_encoder", "has no `input_ids` input")
        })?;
        let length = ids.size(1).unwrap_or(LENGTH);
        let known = ["input_ids", "attention_mask", "position_ids"];
        if let Some(other) = net.inputs().iter().find(|port| !known.contains(&port.name.as_str())) {
            let reason = format!("requires the unknown input `{}`", other.name);
            return Err(DiffusionError::unsupported("text_encoder", reason));
        }
        let states = net.outputs().iter().find(|port| port.element.is_float() && port.rank() == 3);
        let states = states.cloned().ok_or_else(|| {
            DiffusionError::unsupported(
                "text_encoder",
                "returns no hidden states: no output has three axes",
            )
        })?;
        Ok(Self { net, tokenizer, pad, length, states })
    }

    /// Returns the prompt's hidden states, `[1, length, size]`, and the number of tokens cut from its end.
    pub(super) fn embed(&mut self, prompt: &str) -> Result<(ArrayD<f32>, usize), DiffusionError> {
        let unreadable =
            |error| DiffusionError::Request(format!("the prompt cannot be tokenized: {error}"));
        let encoding = self.tokenizer.encode(chat(prompt), false).map_err(unreadable)?;
        let tokens = encoding.get_ids();
        let cut = tokens.len().saturating_sub(self.length);
        let used = tokens.len() - cut;
        let shape = (1, self.length);
        let ids = Array2::from_shape_fn(shape, |(_, at)| {
            tokens[..used].get(at).map_or(self.pad, |id| i64::from(*id))
        });
        let mask = Array2::from_shape_fn(shape, |(_, at)| i64::from(at < used));
        let positions = Array2::from_shape_fn(shape, |(_, at)| at as i64);
        let ports = self.net.inputs().to_vec();
        let inputs: Vec<_> = ports
            .iter()
            .map(|port| {
                let values = match port.name.as_str() {
                    "input_ids" => &ids,
                    "attention_mask" => &mask,
                    _ => &positions,
                };
                (port, Input::Integers(values.view().into_dyn()))
            })
            .collect();
        Ok((self.net.run(&inputs, &self.states)?, cut))
    }
}

/// Formats a prompt as a user's message by Qwen 3's chat template, with thinking turned off.
fn chat(prompt: &str) -> String {
    format!("<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
}

fn pad_token(files: &Path) -> Result<String, DiffusionError> {
    let file = files.join("tokenizer_config.json");
    let own = if file.is_file() { json::read_object(&file)?.remove("pad_token") } else { None };
    let own = own.and_then(|token| match token {
        Value::String(token) => Some(token),
        other => other.get("content").and_then(Value::as_str).map(str::to_owned),
    });
    Ok(own.unwrap_or_else(|| "<|endoftext|>".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_becomes_one_user_message_without_thinking() {
        let text = chat("make it blue");
        assert!(
            text.starts_with("<|im_start|>user\nmake it blue<|im_end|>\n<|im_start|>assistant\n")
        );
        assert!(text.ends_with("<think>\n\n</think>\n\n"));
    }
}
