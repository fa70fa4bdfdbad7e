//! CLIP's tokenizer, read from a folder in Hugging Face's layout.

use std::path::Path;

use serde_json::{Map, Value};
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::{Lowercase, NFC, Sequence as Normalizers};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizers;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use super::error::DiffusionError;
use super::json;

/// A text as token ids, in windows of the length that the text encoder expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The windows, at least one: begin, a piece of the text, end, padding.
    pub windows: Vec<Vec<i64>>,
    /// Tokens cut from the end of the text.
    pub cut: usize,
}

/// CLIP's byte-pair encoding.
#[derive(Clone, Debug)]
pub struct ClipTokenizer {
    tokenizer: Tokenizer,
    begin: i64,
    end: i64,
    pad: i64,
    length: usize,
}

const BEGIN: &str = "<|startoftext|>";
const END: &str = "<|endoftext|>";
/// The end of tokens that end a word.
const WORD_END: &str = "</w>";

impl ClipTokenizer {
    /// Opens a `tokenizer/` folder: `tokenizer.json`, or `vocab.json` and `merges.txt`. `special_tokens_map.json` or
    /// `tokenizer_config.json` states the padding token (SD 2 pads with `!`); by default it is the end token. A text
    /// becomes `length` ids, or fewer if `tokenizer_config.json` has a smaller `model_max_length`.
    ///
    /// As in `transformers`, special tokens are recognized anywhere in a text, even ordinary words such as SD 2's `!`,
    /// and tokens that `tokenizer_config.json` adds are known.
    ///
    /// # Errors
    /// [`DiffusionError::File`] if a file is missing or invalid.
    pub fn open(folder: &Path, length: usize) -> Result<Self, DiffusionError> {
        let mut tokenizer = match open_json(folder)? {
            Some(tokenizer) => tokenizer,
            None => from_vocabulary(folder)?,
        };
        let settings = Settings::read(folder)?;
        for (id, token) in settings.added_tokens() {
            let content = token.content.clone();
            tokenizer.add_tokens(&[token]);
            if tokenizer.token_to_id(&content) != Some(id) {
                let reason = format!(
                    "tokenizer_config.json adds the token {content} with id {id}, but the next free id is another one"
                );
                return Err(DiffusionError::file(folder, &reason));
            }
        }
        let special = ["bos_token", "eos_token", "unk_token", "pad_token"];
        let special = special.iter().filter_map(|name| settings.token(name));
        let known = special.filter(|token| tokenizer.token_to_id(token).is_some());
        let special: Vec<_> = known.map(|token| AddedToken::from(token, true)).collect();
        tokenizer.add_special_tokens(&special);
        let id = |token: &str| {
            tokenizer.token_to_id(token).map(i64::from).ok_or_else(|| {
                DiffusionError::file(folder, &format!("the vocabulary has no token {token}"))
            })
        };
        let end_token = settings.token("eos_token").unwrap_or(END);
        let begin = id(settings.token("bos_token").unwrap_or(BEGIN))?;
        let end = id(end_token)?;
        let pad = id(settings.token("pad_token").unwrap_or(end_token))?;
        let length = settings.length().map_or(length, |own| own.min(length)).max(3);
        Ok(Self { tokenizer, begin, end, pad, length })
    }

    /// Returns the number of ids per window.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Encodes a text in up to `most` windows; the rest is cut off. A word is split between two windows only if it has
    /// no room in one.
    ///
    /// # Errors
    /// [`DiffusionError::Request`] if the text cannot be encoded.
    pub fn encode(&self, text: &str, most: usize) -> Result<Tokens, DiffusionError> {
        let encoding = self.tokenizer.encode(text, false).map_err(|error| {
            DiffusionError::Request(format!("the prompt cannot be tokenized: {error}"))
        })?;
        let (ids, tokens) = (encoding.get_ids(), encoding.get_tokens());
        let (room, mut windows, mut start) = (self.length - 2, Vec::new(), 0);
        while windows.is_empty() || start < ids.len() && windows.len() < most {
            let full = ids.len().min(start + room);
            let is_last = full == ids.len() || windows.len() + 1 == most;
            let ends_word = |at: &usize| tokens[at - 1].ends_with(WORD_END);
            let whole = (start + 1..=full).rev().find(ends_word);
            // Whether the word after it has room in the next window.
            let fits =
                |whole: &usize| (full..=ids.len().min(whole + room)).any(|at| ends_word(&at));
            let end = if is_last { full } else { whole.filter(fits).unwrap_or(full) };
            windows.push(self.window(&ids[start..end]));
            start = end;
        }
        Ok(Tokens { windows, cut: ids.len() - start })
    }

    /// Returns a window with a piece of a text, which may be empty.
    pub fn window(&self, piece: &[u32]) -> Vec<i64> {
        let mut ids = Vec::with_capacity(self.length);
        ids.push(self.begin);
        ids.extend(piece.iter().map(|id| i64::from(*id)));
        ids.push(self.end);
        ids.resize(self.length, self.pad);
        ids
    }
}

/// Opens the `tokenizer.json` of a folder, if it exists, with its own truncation and padding turned off.
pub(super) fn open_json(folder: &Path) -> Result<Option<Tokenizer>, DiffusionError> {
    let file = folder.join("tokenizer.json");
    if !file.is_file() {
        return Ok(None);
    }
    let mut tokenizer =
        Tokenizer::from_file(&file).map_err(|error| DiffusionError::file(&file, &error))?;
    tokenizer.with_truncation(None).map_err(|error| DiffusionError::file(&file, &error))?;
    tokenizer.with_padding(None);
    Ok(Some(tokenizer))
}

/// Builds the tokenizer from CLIP's two older files, as `transformers` does.
fn from_vocabulary(folder: &Path) -> Result<Tokenizer, DiffusionError> {
    let (vocabulary, merges) = (folder.join("vocab.json"), folder.join("merges.txt"));
    for file in [&vocabulary, &merges] {
        if !file.is_file() {
            let reason = "the file is missing, and so is tokenizer.json";
            return Err(DiffusionError::file(file, reason));
        }
    }
    let build = || -> tokenizers::Result<Tokenizer> {
        let files = (vocabulary.to_string_lossy(), merges.to_string_lossy());
        let bpe = BPE::from_file(&files.0, &files.1)
            .unk_token(END.to_owned())
            .continuing_subword_prefix(String::new())
            .end_of_word_suffix("</w>".to_owned())
            .build()?;
        let mut tokenizer = Tokenizer::new(bpe);
        let spaces = Replace::new(ReplacePattern::Regex(r"\s+".to_owned()), " ")?;
        let normalizers = vec![NFC.into(), spaces.into(), Lowercase.into()];
        tokenizer.with_normalizer(Some(Normalizers::new(normalizers)));
        let words = SplitPattern::Regex(
            r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
                .to_owned(),
        );
        let words = Split::new(words, SplitDelimiterBehavior::Removed, true)?;
        let bytes = ByteLevel::new(false, true, true);
        tokenizer.with_pre_tokenizer(Some(PreTokenizers::new(vec![words.into(), bytes.into()])));
        let special = [BEGIN, END].map(|token| AddedToken::from(token, true));
        tokenizer.add_special_tokens(&special);
        Ok(tokenizer)
    };
    build().map_err(|error| DiffusionError::file(&vocabulary, &error))
}

/// The two files with the settings of a tokenizer.
struct Settings {
    files: Vec<Map<String, Value>>,
}

impl Settings {
    fn read(folder: &Path) -> Result<Self, DiffusionError> {
        let mut files = Vec::new();
        for name in ["special_tokens_map.json", "tokenizer_config.json"] {
            let file = folder.join(name);
            if file.is_file() {
                files.push(json::read_object(&file)?);
            }
        }
        Ok(Self { files })
    }

    /// Returns a special token, which is a string or an object with a `content`.
    fn token(&self, name: &str) -> Option<&str> {
        self.files.iter().filter_map(|file| file.get(name)).find_map(|token| {
            token.as_str().or_else(|| token.get("content").and_then(Value::as_str))
        })
    }

    /// Returns the tokens in `added_tokens_decoder`, sorted by id.
    fn added_tokens(&self) -> Vec<(u32, AddedToken)> {
        let lists =
            self.files.iter().filter_map(|file| file.get("added_tokens_decoder")?.as_object());
        let mut tokens: Vec<_> = lists
            .flatten()
            .filter_map(|(id, token)| {
                let content = token.get("content")?.as_str()?;
                let flag = |name: &str, default| {
                    token.get(name).and_then(Value::as_bool).unwrap_or(default)
                };
                let is_special = flag("special", false);
                let token = AddedToken::from(content, is_special)
                    .single_word(flag("single_word", false))
                    .lstrip(flag("lstrip", false))
                    .rstrip(flag("rstrip", false))
                    .normalized(flag("normalized", !is_special));
                Some((id.parse().ok()?, token))
            })
            .collect();
        tokens.sort_by_key(|(id, _)| *id);
        tokens
    }

    /// Returns `model_max_length`, which is 10^30 in some files for "no limit".
    fn length(&self) -> Option<usize> {
        let length = self.files.iter().find_map(|file| file.get("model_max_length"))?;
        length
            .as_u64()
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length >= 2)
    }
}

#[cfg(test)]
mod tests;
