//! `model.toml`, which states every fact about a model. Reading checks all that can be checked without
//! opening the model; an unknown field is refused, because a misspelt fact would otherwise be a silent
//! default. Each task has a contract of its own, in a file of its own.

mod segmentation;
mod source;
mod upscale;

use std::fs;
use std::path::{Path, PathBuf};

use retouch_core::tool::{Factor, Tool};
use serde::Deserialize;

pub use segmentation::{Divisor, PictureInput, Postprocess, Range, Resize, Segmentation};
use source::Source;
pub use upscale::{Enlargement, TileInput, Tiling, TilingMode, Upscale};

/// A manifest or binding that cannot be used; the text says which file and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct ManifestError {
    /// The file at fault.
    pub file: PathBuf,
    /// What is wrong with it, in one sentence.
    pub problem: String,
}

/// Everything known about one model.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The model's name: its folder's name.
    pub name: String,
    /// The folder that holds `model.toml` and the model's files.
    pub folder: PathBuf,
    /// The ONNX file, inside `folder`.
    pub file: String,
    /// The ONNX file's SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// The ONNX file's size.
    pub size_bytes: u64,
    /// The files beside it that its graph keeps tensors in.
    pub extra: Vec<Extra>,
    /// The weights' licence, as an SPDX expression.
    pub licence: String,
    /// Whether that licence allows paid use.
    pub commercial_use: bool,
    /// Whom to name.
    pub attribution: String,
    /// Where the model comes from.
    pub homepage: String,
    /// What the model does and the contract of its inputs and outputs.
    pub task: Task,
    /// Pictures with a known right answer.
    pub golden: Vec<Golden>,
    /// `model.toml` as it is written, to tell one version from the next.
    pub text: String,
}

/// What a model does. Each task has a contract of its own; adding a task is adding a variant.
#[derive(Clone, Debug)]
pub enum Task {
    /// A picture in, how much of each pixel belongs to the subject out.
    Segmentation(Segmentation),
    /// A picture in, a larger one out.
    Upscale(Upscale),
}

impl Task {
    /// The task's name, as `model.toml` spells it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Segmentation(_) => "segmentation",
            Self::Upscale(_) => "upscale",
        }
    }

    /// The name of the one input tensor.
    pub fn input(&self) -> &str {
        match self {
            Self::Segmentation(segmentation) => &segmentation.input.name,
            Self::Upscale(upscale) => &upscale.input.name,
        }
    }

    /// The name of the one output tensor that is asked for.
    pub fn output(&self) -> &str {
        match self {
            Self::Segmentation(segmentation) => &segmentation.output.name,
            Self::Upscale(upscale) => &upscale.output.name,
        }
    }

    /// Whether a model of this task can serve a tool.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn can_serve(&self, tool: Tool) -> Result<(), String> {
        match (self, tool) {
            (Self::Segmentation(_), Tool::RemoveBackground)
            | (
                Self::Upscale(Upscale { upscale: Enlargement { scale: 4 }, .. }),
                Tool::Upscale(_),
            )
            | (
                Self::Upscale(Upscale { upscale: Enlargement { scale: 2 }, .. }),
                Tool::Upscale(Factor::X2),
            ) => Ok(()),
            (Self::Upscale(model), Tool::Upscale(factor)) => {
                Err(format!("its scale is {}, not {}", model.upscale.scale, factor.get()))
            }
            (Self::Segmentation(_), Tool::Upscale(_))
            | (Self::Upscale(_), Tool::RemoveBackground) => {
                Err(format!("its task is {}", self.as_str()))
            }
        }
    }

    fn parse(name: &str, own: toml::Table) -> Result<Self, String> {
        let told = |error: toml::de::Error| readable(&error);
        let task = match name {
            "segmentation" => Self::Segmentation(own.try_into().map_err(told)?),
            "upscale" => Self::Upscale(own.try_into().map_err(told)?),
            other => {
                return Err(format!(
                    "task {other:?} is unknown; known are \"segmentation\" and \"upscale\""
                ));
            }
        };
        match &task {
            Self::Segmentation(segmentation) => segmentation.input.check()?,
            Self::Upscale(upscale) => upscale.check()?,
        }
        Ok(task)
    }
}

/// The order of a tensor's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Batch, channel, row, column; channels are R, G, B.
    Nchw,
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// 32-bit floats.
    F32,
}

/// The output a model is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The tensor's name in the graph.
    pub name: String,
}

/// A file that the graph keeps tensors in: what ONNX calls external data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extra {
    /// Its name, in the model's folder; the graph names it the same.
    pub file: String,
    /// Its SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Its size.
    pub size_bytes: u64,
}

/// A picture whose right answer is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// The picture, relative to the model's folder.
    pub image: PathBuf,
    /// What the model must make of it, relative to the model's folder: for a segmentation the alpha as a
    /// gray picture of the same size, for an upscale the picture `scale` times as wide and high.
    pub expected: PathBuf,
    /// The largest mean absolute error that is accepted, of samples as 0..=1.
    pub tolerance: f32,
    /// When it is tried.
    #[serde(default)]
    pub when: GoldenWhen,
}

/// When a golden picture is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoldenWhen {
    /// At every load, and by `models check`.
    #[default]
    Load,
    /// Only by `models check`: for models whose run takes so long that a start would wait for it.
    Check,
}

/// The part of `model.toml` that every task shares; what is left of the file is the task's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    name: String,
    task: String,
    file: String,
    sha256: String,
    size_bytes: u64,
    licence: String,
    commercial_use: bool,
    attribution: String,
    homepage: String,
    /// Read by `scripts/models`; here only checked.
    source: Option<Source>,
    #[serde(default)]
    extra: Vec<Extra>,
    #[serde(default)]
    golden: Vec<Golden>,
}

impl Shared {
    const FIELDS: [&'static str; 12] = [
        "name",
        "task",
        "file",
        "sha256",
        "size_bytes",
        "licence",
        "commercial_use",
        "attribution",
        "homepage",
        "source",
        "extra",
        "golden",
    ];
}

impl Manifest {
    /// Reads and checks `folder/model.toml`.
    ///
    /// # Errors
    /// When the file is missing, is not TOML, has an unknown or missing field, or states something
    /// impossible.
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join("model.toml");
        let text = read_text(&path)?;
        Self::parse(&text, folder).map_err(|problem| ManifestError { file: path, problem })
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let fields: toml::Table = text.parse().map_err(|error| readable(&error))?;
        let (shared, own): (toml::Table, toml::Table) =
            fields.into_iter().partition(|(field, _)| Shared::FIELDS.contains(&field.as_str()));
        let shared: Shared = shared.try_into().map_err(|error| readable(&error))?;
        let task = Task::parse(&shared.task, own)?;
        if folder.file_name().is_none_or(|last| last != shared.name.as_str()) {
            let folder = folder.display();
            return Err(format!("name {:?} differs from its folder {folder}", shared.name));
        }
        check_sha256("sha256", &shared.sha256)?;
        check_file_name("file", &shared.file)?;
        for extra in &shared.extra {
            check_file_name("extra.file", &extra.file)?;
            check_sha256("extra.sha256", &extra.sha256)?;
            if extra.file == shared.file {
                return Err(format!("extra.file {:?} is the model's own file", extra.file));
            }
        }
        if let Some(source) = &shared.source {
            source.check()?;
        }
        for golden in &shared.golden {
            golden.check()?;
        }
        Ok(Self {
            name: shared.name,
            folder: folder.to_owned(),
            file: shared.file,
            sha256: shared.sha256,
            size_bytes: shared.size_bytes,
            extra: shared.extra,
            licence: shared.licence,
            commercial_use: shared.commercial_use,
            attribution: shared.attribution,
            homepage: shared.homepage,
            task,
            golden: shared.golden,
            text: text.to_owned(),
        })
    }

    /// The path of the ONNX file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.file)
    }
}

impl Golden {
    fn check(&self) -> Result<(), String> {
        if self.tolerance.is_finite() && self.tolerance > 0.0 {
            Ok(())
        } else {
            Err(format!("golden.tolerance is {}; it must be above 0", self.tolerance))
        }
    }
}

fn check_normalisation(mean: &[f32; 3], std: &[f32; 3]) -> Result<(), String> {
    if !mean.iter().all(|mean| mean.is_finite()) {
        return Err("input.mean must be finite".to_owned());
    }
    if !std.iter().all(|std| std.is_finite() && *std > 0.0) {
        return Err("input.std must be above 0".to_owned());
    }
    Ok(())
}

fn check_sha256(field: &str, text: &str) -> Result<(), String> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == 64 && text.bytes().all(is_hex) {
        Ok(())
    } else {
        Err(format!("{field} must be 64 lower-case hexadecimal digits"))
    }
}

fn check_file_name(field: &str, file: &str) -> Result<(), String> {
    if is_plain_name(file) {
        Ok(())
    } else {
        Err(format!("{field} {file:?} must be a plain file name in the model's own folder"))
    }
}

/// Whether a name leads nowhere else: no slash, no `..`.
pub(super) fn is_plain_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|last| last == name)
}

pub(super) fn readable(error: &toml::de::Error) -> String {
    error.to_string().trim_end().replace('\n', " ")
}

pub(super) fn read_text(path: &Path) -> Result<String, ManifestError> {
    fs::read_to_string(path)
        .map_err(|error| ManifestError { file: path.to_owned(), problem: error.to_string() })
}
