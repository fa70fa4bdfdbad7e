//! `model.toml`, which states every fact about a model. Reading checks all that can be checked without
//! opening the model; an unknown field is refused, because a misspelt fact would otherwise be a silent
//! default. Each task has a contract of its own, in a file of its own.

mod contract;
mod paint;
mod safety;
mod segmentation;
mod source;
mod task;
mod text;
mod upscale;

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

pub use contract::{Element, Layout, Output};
pub use paint::{Exemplar, Fill, FillElement, FillImage, FillMask, Inpaint, Sampling};
pub use safety::{ChannelOrder, Safety, SafetyInput};
pub use segmentation::{PictureInput, Postprocess, Resize, Segmentation};
use source::Source;
pub use task::{NetTask, Task};
pub use text::ManifestError;
use text::check_sha256;
pub(crate) use text::{is_plain_name, read_text, readable};
pub use upscale::{Enlargement, TileInput, Tiling, TilingMode, Upscale};

/// Everything known about one model.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The model's name: its folder's name.
    pub name: String,
    /// The folder that holds `model.toml` and the model's files.
    pub folder: PathBuf,
    /// The model's files. The first is the ONNX file, those behind it are what its graph keeps tensors in;
    /// of a pipeline they are all it is made of. A fill that has no weights has none.
    pub files: Vec<ModelFile>,
    /// Whether `scripts/models fetch` knows where to get its file; else operators bring it themselves.
    pub has_source: bool,
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

/// A file of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Its name, in the model's folder; of a pipeline's, its path in it. What ONNX calls external data is
    /// named as the graph names it.
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
    file: Option<String>,
    sha256: Option<String>,
    size_bytes: Option<u64>,
    licence: String,
    commercial_use: bool,
    attribution: String,
    homepage: String,
    /// Read by `scripts/models`; here only checked.
    source: Option<Source>,
    #[serde(default)]
    extra: Vec<ModelFile>,
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

impl Shared {
    /// Every file, the ONNX file first.
    fn files(&self, task: &Task) -> Result<Vec<ModelFile>, String> {
        let own = match (&self.file, &self.sha256, self.size_bytes) {
            (Some(file), Some(sha256), Some(size_bytes)) => {
                Some(ModelFile { file: file.clone(), sha256: sha256.clone(), size_bytes })
            }
            // A fill without weights has no file, a pipeline only those of its parts.
            (None, None, None) if matches!(task, Task::Exemplar(_)) => None,
            (None, None, None) if task.is_pipeline() && !self.extra.is_empty() => None,
            (None, _, _) => return Err("missing field `file`".to_owned()),
            (_, None, _) => return Err("missing field `sha256`".to_owned()),
            (_, _, None) => return Err("missing field `size_bytes`".to_owned()),
        };
        let check = |field: &str, file: &ModelFile| {
            if task.is_pipeline() {
                check_file_path(field, &file.file)?;
            } else {
                check_file_name(field, &file.file)?;
            }
            check_sha256(&field.replace("file", "sha256"), &file.sha256)
        };
        if let Some(own) = &own {
            check("file", own)?;
        }
        for extra in &self.extra {
            check("extra.file", extra)?;
            if own.as_ref().is_some_and(|own| own.file == extra.file) {
                return Err(format!("extra.file {:?} is the model's own file", extra.file));
            }
        }
        Ok(own.into_iter().chain(self.extra.iter().cloned()).collect())
    }
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
        let names: Vec<String> = own.keys().cloned().collect();
        let task = Task::parse(&shared.task, own)
            .map_err(|problem| with_shared_fields(problem, &names))?;
        if folder.file_name().is_none_or(|last| last != shared.name.as_str()) {
            let folder = folder.display();
            return Err(format!("name {:?} differs from its folder {folder}", shared.name));
        }
        let files = shared.files(&task)?;
        if let Some(source) = &shared.source {
            source.check()?;
        }
        for golden in &shared.golden {
            golden.check()?;
        }
        Ok(Self {
            name: shared.name,
            folder: folder.to_owned(),
            files,
            has_source: shared.source.is_some(),
            licence: shared.licence,
            commercial_use: shared.commercial_use,
            attribution: shared.attribution,
            homepage: shared.homepage,
            task,
            golden: shared.golden,
            text: text.to_owned(),
        })
    }

    /// What tells this version's weights from another's: the ONNX file's SHA-256. Of several files it is the
    /// SHA-256 of what `sha256sum` would print of them, in the manifest's order; of a fill without weights
    /// that of `model.toml`.
    pub fn sha256(&self) -> String {
        match self.files.as_slice() {
            [] => hex::encode(Sha256::digest(&self.text)),
            [only] => only.sha256.clone(),
            [first, ..] if !self.task.is_pipeline() => first.sha256.clone(),
            files => {
                let lines = files.iter().map(|file| format!("{}  {}\n", file.sha256, file.file));
                hex::encode(Sha256::digest(lines.collect::<String>()))
            }
        }
    }
}

/// What a task says of a field that it does not know, with the fields that it shares with every other: one of them
/// may have been meant. `own` are the names of the fields that were left to it.
fn with_shared_fields(problem: String, own: &[String]) -> String {
    let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    if unknown.is_some_and(|unknown| own.iter().any(|name| name == unknown)) {
        let shared = Shared::FIELDS.map(|field| format!("`{field}`")).join(", ");
        format!("{problem}; every task also knows {shared}")
    } else {
        problem
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

fn check_file_name(field: &str, file: &str) -> Result<(), String> {
    if is_plain_name(file) {
        Ok(())
    } else {
        Err(format!("{field} {file:?} must be a plain file name in the model's own folder"))
    }
}

fn check_file_path(field: &str, file: &str) -> Result<(), String> {
    let is_inside = |part| matches!(part, Component::Normal(_));
    if !file.is_empty() && Path::new(file).components().all(is_inside) {
        Ok(())
    } else {
        Err(format!("{field} {file:?} must be a path inside of the model's own folder"))
    }
}
