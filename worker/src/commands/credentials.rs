//! `retouch-worker credentials`: shows the marks of pictures.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use retouch_core::Clock;
use retouch_credentials::{
    Action, Claim, Credentials, CredentialsConfig, Format, Ingredient, Problem, Report, Signature,
    State,
};

/// The arguments of `credentials`.
#[derive(Args)]
pub struct Show {
    /// Pictures: PNG, JPEG, WebP, HEIC, or AVIF.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    credentials: CredentialsConfig,
}

impl Show {
    /// Prints a report of each file.
    ///
    /// # Errors
    /// After the last file, if one is not a picture, or its manifest is damaged or does not belong to its pixels.
    pub fn execute(self) -> anyhow::Result<()> {
        let credentials = Credentials::open(&self.credentials, Clock::system().now())?;
        let verifier = credentials.verifier().map_err(anyhow::Error::msg)?;
        let (mut invalid, mut unread) = (0, 0);
        for path in &self.files {
            let name = path.display();
            match read(path) {
                Ok(file) => {
                    let report = verifier.read(&file);
                    invalid += usize::from(report.state == State::Invalid);
                    print!("{name}\n{}", described(&report));
                }
                Err(error) => {
                    unread += 1;
                    eprintln!("{error:#}");
                }
            }
        }
        let count = |count, one: &str, more: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {more}")),
        };
        let problems = [
            count(invalid, "picture has Content Credentials", "pictures have Content Credentials")
                .map(|pictures| pictures + " that are not valid"),
            count(unread, "file", "files").map(|files| files + " could not be read"),
        ];
        let problems: Vec<_> = problems.into_iter().flatten().collect();
        ensure!(problems.is_empty(), "{}", problems.join("; "));
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let file = fs::read(path).with_context(|| name.to_string())?;
    ensure!(Format::of(&file).is_some(), "{name} is not a PNG, JPEG, WebP, HEIC, or AVIF");
    Ok(file)
}

fn described(report: &Report) -> String {
    let state = match report.state {
        State::Absent => "carries no Content Credentials",
        State::Invalid => "NOT VALID: damaged, or of other pixels",
        State::Valid => "valid, by a signer that is unknown here",
        State::Trusted => "valid, by a trusted signer",
    };
    let mut text = format!("  {state}\n");
    if let Some(source) = &report.source {
        let where_from = if report.is_source_claimed { "" } else { " (XMP, not signed)" };
        let _ = writeln!(text, "  source: {source}{where_from}");
    }
    list_problems(&mut text, &report.problems, 1);
    if let Some(claim) = &report.claim {
        list_claim(&mut text, claim, 1);
    }
    text
}

fn list_claim(text: &mut String, claim: &Claim, depth: usize) {
    let indent = "  ".repeat(depth);
    if let Some(generator) = &claim.generator {
        let _ = writeln!(text, "{indent}made with {generator}");
    }
    if let Some(Signature { name, organization, time, is_ours }) = &claim.signature {
        let who: Vec<_> = [name, organization].into_iter().flatten().map(String::as_str).collect();
        let ours = if *is_ours { ", this installation" } else { "" };
        let when = time.as_ref().map_or_else(String::new, |time| format!(" at {time}"));
        let _ = writeln!(text, "{indent}signed by {}{ours}{when}", who.join(", "));
    }
    for Action { action, description, agent, when, source } in &claim.actions {
        let _ = write!(text, "{indent}- {action}");
        if let Some(description) = description {
            let _ = write!(text, ": {description}");
        }
        let extra = [agent.clone(), when.clone(), source.as_ref().map(ToString::to_string)];
        let extra: Vec<_> = extra.into_iter().flatten().collect();
        if !extra.is_empty() {
            let _ = write!(text, " ({})", extra.join(", "));
        }
        text.push('\n');
    }
    for Ingredient { title, is_parent, claim, problems } in &claim.ingredients {
        let role = if *is_parent { "made from" } else { "contains" };
        let title = title.as_deref().unwrap_or("a picture");
        let _ = writeln!(text, "{indent}{role} {title}");
        list_problems(text, problems, depth + 1);
        if let Some(claim) = claim {
            list_claim(text, claim, depth + 1);
        }
    }
}

fn list_problems(text: &mut String, problems: &[Problem], depth: usize) {
    let indent = "  ".repeat(depth);
    for Problem { code, explanation } in problems {
        let explanation = explanation.as_deref().unwrap_or_default();
        let _ = writeln!(text, "{indent}! {code}: {explanation}");
    }
}
