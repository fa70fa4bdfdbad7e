//! The text encoders of Stable Diffusion: one, or the two of SDXL.
//!
//! An encoder takes 75 tokens at a time. A longer text is encoded in several windows, whose hidden states are joined: the
//! UNet attends to all of them. diffusers cuts such a text, so only texts of one window are compared with it.

use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, ArrayD, Axis, concatenate};
use serde_json::{Map, Value};

use super::config::{config, positive};
use super::ports::only_input;
use crate::diffusion::error::DiffusionError;
use crate::diffusion::net::{Input, Net, Port};
use crate::diffusion::tokenizer::{ClipTokenizer, Tokens};
use crate::session::Runtime;

/// The ids per text, if neither graph nor configuration states the number.
const LENGTH: usize = 77;

/// Texts as the UNet takes them, one row per text.
#[derive(Clone, Debug)]
pub(in crate::diffusion) struct EmbeddedTexts {
    /// The hidden states, `[texts, windows · length, size]`. In SDXL, the hidden states of both encoders are joined
    /// along the last axis.
    pub(in crate::diffusion) states: ArrayD<f32>,
    /// The pooled output of SDXL's second encoder for the first window, `[texts, size]`.
    pub(in crate::diffusion) pooled: Option<ArrayD<f32>>,
    /// The tokens cut from the end of the prompt.
    pub(in crate::diffusion) cut: usize,
}

impl EmbeddedTexts {
    pub(super) fn bytes(&self) -> usize {
        4 * (self.states.len() + self.pooled.as_ref().map_or(0, ArrayD::len))
    }
}

pub(super) struct TextEncoders {
    first: TextEncoder,
    second: Option<SecondEncoder>,
}

struct SecondEncoder {
    encoder: TextEncoder,
    pooled: Port,
    /// Whether an empty negative prompt becomes zeros instead of being encoded.
    zeros_for_empty: bool,
}

impl TextEncoders {
    /// Opens the only encoder of Stable Diffusion.
    pub(super) fn open(folder: &Path, runtime: &Runtime) -> Result<Self, DiffusionError> {
        let first = TextEncoder::open(folder, Part::FIRST, States::Last, runtime)?;
        Ok(Self { first, second: None })
    }

    /// Opens both encoders of SDXL, whose model has this `model_index.json`.
    pub(super) fn open_sdxl(
        folder: &Path,
        index: &Map<String, Value>,
        runtime: &Runtime,
    ) -> Result<Self, DiffusionError> {
        if index.get("requires_aesthetics_score").and_then(Value::as_bool) == Some(true) {
            let reason = "the model is a refiner of SDXL (`requires_aesthetics_score`), which is not supported";
            return Err(DiffusionError::file(&folder.join("model_index.json"), reason));
        }
        let first = TextEncoder::open(folder, Part::FIRST, States::Penultimate, runtime)?;
        let encoder = TextEncoder::open(folder, Part::SECOND, States::Penultimate, runtime)?;
        let outputs = encoder.net.outputs().iter();
        let mut pooled = outputs.filter(|port| port.element.is_float() && port.rank() == 2);
        let pooled =
            pooled.clone().find(|port| port.name == "text_embeds").or_else(|| pooled.next());
        let pooled = pooled.cloned().ok_or_else(|| {
            let reason = "returns no `text_embeds`: no output has two axes";
            DiffusionError::unsupported(Part::SECOND.net, reason)
        })?;
        // diffusers' default is true.
        let zeros_for_empty =
            index.get("force_zeros_for_empty_prompt").and_then(Value::as_bool).unwrap_or(true);
        Ok(Self { first, second: Some(SecondEncoder { encoder, pooled, zeros_for_empty }) })
    }

    /// Returns a text's ids for the first encoder, and for the second one if there is one, in up to `most` windows.
    pub(super) fn tokens(&self, text: &str, most: usize) -> Result<Vec<Tokens>, DiffusionError> {
        let second = self.second.as_ref().map(|second| &second.encoder);
        [Some(&self.first), second]
            .into_iter()
            .flatten()
            .map(|one| one.tokenizer.encode(text, most))
            .collect()
    }

    /// Returns how many windows the longer of both texts needs, up to `most`.
    pub(super) fn windows(
        &self,
        negative: Option<&str>,
        prompt: &str,
        most: usize,
    ) -> Result<usize, DiffusionError> {
        let mut needed = 1;
        for text in negative.into_iter().chain([prompt]) {
            let tokens = self.tokens(text, most)?;
            needed = tokens.iter().map(|tokens| tokens.windows.len()).fold(needed, usize::max);
        }
        Ok(needed)
    }

    /// Embeds the negative prompt, if given, and the prompt, in as many windows as the longer one needs, up to `most`.
    pub(super) fn embed(
        &mut self,
        negative: Option<&str>,
        prompt: &str,
        most: usize,
    ) -> Result<EmbeddedTexts, DiffusionError> {
        let windows = self.windows(negative, prompt, most)?;
        let Some(second) = &mut self.second else {
            let texts: Vec<_> = negative.into_iter().chain([prompt]).collect();
            return self.first.run(&texts, windows, None);
        };
        let encoded = negative.filter(|text| !(text.is_empty() && second.zeros_for_empty));
        let texts: Vec<_> = encoded.into_iter().chain([prompt]).collect();
        let EmbeddedTexts { states, cut, .. } = self.first.run(&texts, windows, None)?;
        let more = second.encoder.run(&texts, windows, Some(&second.pooled))?;
        let joined = concatenate(Axis(2), &[states.view(), more.states.view()]);
        let joined = joined.map_err(|error| {
            let reason = format!("the hidden states of both encoders do not fit: {error}");
            DiffusionError::unsupported(Part::SECOND.net, reason)
        })?;
        let is_zero = negative.is_some() && encoded.is_none();
        let zeros_first = |rows: ArrayD<f32>| if is_zero { after_zeros(&rows) } else { rows };
        Ok(EmbeddedTexts { states: zeros_first(joined), pooled: more.pooled.map(zeros_first), cut })
    }

    pub(super) fn run_time(&self) -> Duration {
        let second = self.second.as_ref().map(|second| second.encoder.net.run_time());
        self.first.net.run_time() + second.unwrap_or_default()
    }
}

/// Inserts a row of zeros before the only row.
fn after_zeros(row: &ArrayD<f32>) -> ArrayD<f32> {
    let mut shape = row.shape().to_vec();
    shape[0] = 2;
    let mut rows = ArrayD::zeros(shape);
    rows.index_axis_mut(Axis(0), 1).assign(&row.index_axis(Axis(0), 0));
    rows
}

/// The folders of an encoder.
#[derive(Clone, Copy)]
struct Part {
    net: &'static str,
    tokenizer: &'static str,
}

impl Part {
    const FIRST: Self = Self { net: "text_encoder", tokenizer: "tokenizer" };
    const SECOND: Self = Self { net: "text_encoder_2", tokenizer: "tokenizer_2" };
}

/// Which hidden states a pipeline uses.
#[derive(Clone, Copy)]
enum States {
    /// The hidden states of the last layer, normalized.
    Last,
    /// The hidden states of the last layer but one, not normalized.
    Penultimate,
}

struct TextEncoder {
    tokenizer: ClipTokenizer,
    net: Net,
    ids: Port,
    states: Port,
}

impl TextEncoder {
    fn open(
        folder: &Path,
        part: Part,
        states: States,
        runtime: &Runtime,
    ) -> Result<Self, DiffusionError> {
        let net = Net::open(folder, part.net, runtime)?;
        let ids = only_input(&net, "integer ids [texts, length]", |port| {
            port.element.is_integer() && port.rank() == 2
        })?;
        let config = config(folder, &[part.net])?;
        let states = match states {
            States::Last => last_states(&net)?,
            States::Penultimate => penultimate_states(&net, &config)?,
        };
        let length =
            ids.size(1).or_else(|| positive(&config, "max_position_embeddings")).unwrap_or(LENGTH);
        let tokenizer = ClipTokenizer::open(&folder.join(part.tokenizer), length)?;
        Ok(Self { tokenizer, net, ids, states })
    }

    /// Embeds some texts, the prompt last, in so many windows. `pooled` is the output with the pooled texts, if it is
    /// wanted.
    fn run(
        &mut self,
        texts: &[&str],
        windows: usize,
        pooled: Option<&Port>,
    ) -> Result<EmbeddedTexts, DiffusionError> {
        let encode = |text: &&str| self.tokenizer.encode(text, windows);
        let tokens: Vec<Tokens> = texts.iter().map(encode).collect::<Result<_, _>>()?;
        let (length, empty) = (self.tokenizer.length(), self.tokenizer.window(&[]));
        let (mut states, mut of_first) = (Vec::new(), None);
        for window in 0..windows {
            let ids = Array2::from_shape_fn((texts.len(), length), |(text, at)| {
                tokens[text].windows.get(window).unwrap_or(&empty)[at]
            });
            let ids = [(&self.ids, Input::Integers(ids.view().into_dyn()))];
            let pooled = pooled.filter(|_| window == 0);
            let wanted: Vec<_> = [Some(&self.states), pooled].into_iter().flatten().collect();
            let mut made = self.net.run_for(&ids, &wanted)?.into_iter();
            states.extend(made.next());
            of_first = of_first.or(made.next());
        }
        let views: Vec<_> = states.iter().map(|own: &ArrayD<f32>| own.view()).collect();
        let states = concatenate(Axis(1), &views)
            .map_err(|error| DiffusionError::unsupported(self.net.part(), error.to_string()))?;
        let cut = tokens.last().map_or(0, |tokens| tokens.cut);
        Ok(EmbeddedTexts { states, pooled: of_first, cut })
    }
}

fn last_states(net: &Net) -> Result<Port, DiffusionError> {
    let mut states = hidden_states(net);
    let last = states.clone().find(|port| port.name == "last_hidden_state").or(states.next());
    last.cloned().ok_or_else(|| {
        DiffusionError::unsupported(
            net.part(),
            "returns no hidden states: no output has three axes",
        )
    })
}

/// Returns the output `hidden_states.N`, where N + 1 is the number of layers; `hidden_states.0` are the embeddings.
fn penultimate_states(net: &Net, config: &Map<String, Value>) -> Result<Port, DiffusionError> {
    let layer = |port: &Port| port.name.strip_prefix("hidden_states.")?.parse::<usize>().ok();
    let layers = positive(config, "num_hidden_layers")
        .or_else(|| hidden_states(net).filter_map(layer).max().filter(|layers| *layers > 0));
    let wanted = layers.map(|layers| layers - 1);
    let found = hidden_states(net).find(|port| wanted.is_some() && layer(port) == wanted);
    found.cloned().ok_or_else(|| {
        let name = wanted.map_or("N".to_owned(), |layer| layer.to_string());
        let reason = format!(
            "returns no `hidden_states.{name}`, the last layer but one, which SDXL uses; export it with optimum, which \
             returns every layer"
        );
        DiffusionError::unsupported(net.part(), reason)
    })
}

fn hidden_states(net: &Net) -> impl Iterator<Item = &Port> + Clone {
    net.outputs().iter().filter(|port| port.element.is_float() && port.rank() == 3)
}
