//! `model.toml`, which states every fact about a model.
//!
//! Reading a manifest checks everything that does not require opening the model. Unknown fields are refused; otherwise
//! a misspelled field would silently take its default. The contract of each task is in a separate file.

mod contract;
mod input_shapes;
mod paint;
mod safety;
mod segment_anything;
mod segmentation;
mod source;
mod task;
mod text;
mod upscale;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::tensor::Tensors;

pub use contract::{Element, Layout, NetOutput, Output, Precision};
pub use input_shapes::SAMPLE_SIDE;
pub use paint::{Exemplar, Fill, FillImage, FillMask, Inpaint, ReferenceHole, Sampling};
pub use safety::{ChannelOrder, Safety, SafetyInput};
pub use segment_anything::{DecoderPorts, SegmentAnything};
pub use segmentation::{InputFit, PictureInput, Postprocess, Resize, Segmentation};
use source::Source;
pub use task::{NetTask, Task};
pub use text::ManifestError;
pub use text::dead_link;
use text::{check_path, check_sha256, no_model};
pub(crate) use text::{is_plain_name, read_text, readable};
pub use upscale::{Enlargement, TileInput, Tiling, TilingMode, Upscale};

/// Everything known about one model.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The model's name, which is also its folder's name.
    pub name: String,
    /// The folder that holds `model.toml` and the model's files.
    pub folder: PathBuf,
    /// The model's files: the ONNX file first, then the files that contain tensors of its graph. A pipeline lists all
    /// of its files, a fill without weights none.
    pub files: Vec<ModelFile>,
    /// Whether `scripts/models fetch` can fetch the file; otherwise operators supply it.
    pub has_source: bool,
    /// The license of the weights, as an SPDX expression.
    pub licence: String,
    /// Whether that license allows paid use.
    pub commercial_use: bool,
    pub attribution: String,
    pub homepage: String,
    /// The memory that the model needs while it is loaded, in bytes; `None` if it is to be measured.
    pub memory_bytes: Option<u64>,
    /// The model's task, with the contract of its inputs and outputs.
    pub task: Task,
    pub golden: Vec<Golden>,
    /// The text of `model.toml`, which distinguishes versions.
    pub text: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// The file name in the model's folder; for a pipeline, the path in it. External data has the name that the graph
    /// uses.
    pub file: String,
    /// 64 lower-case hexadecimal digits.
    pub sha256: String,
    pub size_bytes: u64,
}

/// A golden image: a picture with a known result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// The picture, relative to the model's folder.
    pub image: PathBuf,
    /// The expected result, relative to the model's folder: for a segmentation the alpha as a gray picture of the same
    /// size, for an upscale a picture `scale` times as wide and high.
    pub expected: PathBuf,
    /// Maximum accepted mean absolute error, for samples in 0..=1; `None` for the default of the element type.
    pub tolerance: Option<f32>,
    #[serde(default)]
    pub when: GoldenWhen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoldenWhen {
    /// At every load and in `models check`.
    #[default]
    Load,
    /// Only in `models check`, for models whose runs are too slow for a start.
    Check,
}

/// The fields of `model.toml` that all tasks share. The remaining fields belong to the task.
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
    /// Used by `scripts/models`; only checked here.
    source: Option<Source>,
    memory_mib: Option<NonZeroU32>,
    #[serde(default)]
    extra: Vec<ModelFile>,
    #[serde(default)]
    golden: Vec<Golden>,
}

impl Shared {
    const FIELDS: [&'static str; 13] = [
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
        "memory_mib",
        "extra",
        "golden",
    ];

    /// Returns every file, the ONNX file first.
    fn files(&self, task: &Task) -> Result<Vec<ModelFile>, String> {
        let own = match (&self.file, &self.sha256, self.size_bytes) {
            (Some(file), Some(sha256), Some(size_bytes)) => {
                Some(ModelFile { file: file.clone(), sha256: sha256.clone(), size_bytes })
            }
            // A fill without weights has no file, and a pipeline lists its files as `extra`.
            (None, None, None) if matches!(task, Task::Exemplar(_)) => None,
            (None, None, None) if task.is_pipeline() && !self.extra.is_empty() => None,
            (None, _, _) => return Err("missing field `file`".to_owned()),
            (_, None, _) => return Err("missing field `sha256`".to_owned()),
            (_, _, None) => return Err("missing field `size_bytes`".to_owned()),
        };
        let check = |field: &str, file: &ModelFile| {
            if task.is_pipeline() {
                check_path(field, &file.file)?;
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
                return Err(format!(
                    "extra.file is {:?}, which is already the model's `file`",
                    extra.file
                ));
            }
        }
        Ok(own.into_iter().chain(self.extra.iter().cloned()).collect())
    }
}

impl Manifest {
    /// Reads and checks `folder/model.toml`.
    ///
    /// # Errors
    /// If the file is missing, is not TOML, or has an unknown, missing or invalid field.
    pub fn read(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join("model.toml");
        if let Some(problem) = no_model(folder) {
            return Err(ManifestError { file: folder.to_owned(), problem });
        }
        let text = read_text(&path)?;
        Self::parse(&text, folder).map_err(|problem| ManifestError { file: path, problem })
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let fields: toml::Table = text.parse().map_err(|error| readable(&error))?;
        if fields.contains_key("license") {
            return Err(
                "unknown field `license`: write `licence`, as in `licence = \"MIT\"`".to_owned()
            );
        }
        let (shared, own): (toml::Table, toml::Table) =
            fields.into_iter().partition(|(field, _)| Shared::FIELDS.contains(&field.as_str()));
        let shared: Shared = shared.try_into().map_err(|error| readable(&error))?;
        let names: Vec<String> = own.keys().cloned().collect();
        let task = Task::parse(&shared.task, own)
            .map_err(|problem| with_shared_fields(problem, &names))?;
        if folder.file_name().is_none_or(|last| last != shared.name.as_str()) {
            let folder = folder.display();
            return Err(format!("name is {:?}, but its folder is {folder}", shared.name));
        }
        let files = shared.files(&task)?;
        if let Some(source) = &shared.source {
            source.check(!shared.extra.is_empty())?;
        }
        for golden in &shared.golden {
            golden.check(&task)?;
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
            memory_bytes: shared.memory_mib.map(|mib| u64::from(mib.get()) << 20),
            task,
            golden: shared.golden,
            text: text.to_owned(),
        })
    }

    /// Returns the SHA-256 that identifies these weights: the checksum of the only file. For several files it is the
    /// SHA-256 of the output of `sha256sum` for them in the manifest's order, and for a fill without weights the checksum
    /// of `model.toml`.
    pub fn sha256(&self) -> String {
        match self.files.as_slice() {
            [] => hex::encode(Sha256::digest(&self.text)),
            [only] => only.sha256.clone(),
            files => {
                let lines = files.iter().map(|file| format!("{}  {}\n", file.sha256, file.file));
                hex::encode(Sha256::digest(lines.collect::<String>()))
            }
        }
    }
}

/// Adds the shared fields to a task's error about an unknown field, because one of them may have been meant. `own`
/// holds the names of the fields that were left to the task.
fn with_shared_fields(problem: String, own: &[String]) -> String {
    let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    if unknown.is_some_and(|unknown| own.iter().any(|name| name == unknown)) {
        let shared = Shared::FIELDS.map(|field| format!("`{field}`")).join(", ");
        format!("{problem}; the fields of every task are {shared}")
    } else {
        problem
    }
}

impl Golden {
    /// Returns the largest accepted mean absolute error of a net with these tensors. By default, it is one level of 255;
    /// half precision, which adds up in deep nets, gets two and a half.
    pub fn accepted_error(&self, tensors: &Tensors<'_>) -> f32 {
        let elements = [tensors.input_format.element, tensors.output_format.element];
        let default = if elements.contains(&Element::F16) { 0.01 } else { 0.004 };
        self.tolerance.unwrap_or(default)
    }

    fn check(&self, task: &Task) -> Result<(), String> {
        match task {
            Task::Segmentation(_) | Task::Upscale(_) => {}
            Task::SdInpaint(_) | Task::Flux2Klein(_) => {
                return Err("[[golden]] is for tasks of one net: state `reference`, a folder of vectors that \
                            `models check` compares a pipeline with"
                    .to_owned());
            }
            Task::Exemplar(_) | Task::Fill(_) | Task::Safety(_) | Task::SegmentAnything(_) => {
                let task = task.as_str();
                return Err(format!("[[golden]] is never compared for task \"{task}\": remove it"));
            }
        }
        for (field, path) in [("golden.image", &self.image), ("golden.expected", &self.expected)] {
            check_path(field, &path.to_string_lossy())?;
        }
        match self.tolerance {
            Some(tolerance) if !(tolerance.is_finite() && tolerance > 0.0) => Err(format!(
                "golden.tolerance is {tolerance}, but must be a finite number above 0, such as 0.004; \
                 omitted, it follows from the element types"
            )),
            Some(_) | None => Ok(()),
        }
    }
}

fn check_file_name(field: &str, file: &str) -> Result<(), String> {
    if is_plain_name(file) {
        Ok(())
    } else {
        Err(format!(
            "{field} is {file:?}, but must be a plain file name in the model's folder; export a model with its data beside it"
        ))
    }
}
