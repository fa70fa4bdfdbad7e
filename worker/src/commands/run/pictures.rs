//! Which pictures a command reads, and which file each result becomes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;

use super::format::Format;
use super::output::STREAM;

/// The pictures to process.
#[derive(Args)]
pub struct PictureArgs {
    /// Pictures, and folders of pictures: PNG, JPEG, WebP, HEIC or AVIF; `-` reads standard input.
    #[arg(required = true, value_name = "PICTURE")]
    inputs: Vec<PathBuf>,
    /// Where to write: a file, `-` for standard output, or a folder. Several pictures need a folder.
    #[arg(short, long)]
    output: PathBuf,
    /// Read subfolders too, and write to subfolders of the same names.
    #[arg(short, long)]
    recursive: bool,
    /// The format of the results [default: as the name of the output says, otherwise png]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Leave out pictures whose results exist.
    #[arg(long)]
    skip_existing: bool,
}

/// A picture and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub input: PathBuf,
    pub output: PathBuf,
    pub format: Format,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// One picture, whose result has a name.
    One(Item),
    /// Results in a folder.
    Many {
        items: Vec<Item>,
        /// How many pictures are left out because their results exist.
        skipped: usize,
    },
}

impl PictureArgs {
    /// Finds the pictures, and creates the folders of their results. If there are several, the mask is left out of them.
    ///
    /// # Errors
    /// If there are none, a result would replace its picture, the mask, or another result, or a folder cannot be read or
    /// created.
    pub fn plan(&self, mask: Option<&Path>) -> anyhow::Result<Plan> {
        let is_stream = |path: &Path| path == Path::new(STREAM);
        let is_folder = self.output.is_dir() || ends_with_slash(&self.output);
        if let [input] = self.inputs.as_slice()
            && !input.is_dir()
            && !is_folder
        {
            let format = Format::of_output(&self.output, self.format)?;
            let item = Item { input: input.clone(), output: self.output.clone(), format };
            refuse_inputs(&item, mask)?;
            if self.skip_existing && item.output.exists() {
                return Ok(Plan::Many { items: Vec::new(), skipped: 1 });
            }
            return Ok(Plan::One(item));
        }
        ensure!(
            !is_stream(&self.output),
            "several pictures cannot go to standard output; name a folder"
        );
        ensure!(
            is_folder || !self.output.exists(),
            "{} is a file; several pictures need a folder",
            self.output.display()
        );
        ensure!(
            is_folder || !Format::is_file_name(&self.output),
            "{0} is the name of a file; several pictures need a folder, such as {0}/",
            self.output.display()
        );
        let mut items = Vec::new();
        for input in &self.inputs {
            if is_stream(input) {
                bail!(
                    "the result of standard input needs a name; use -o FILE, or -o - for standard output"
                );
            }
            if input.is_dir() {
                self.add_folder(input, Path::new(""), &mut Vec::new(), &mut items)?;
            } else {
                items.push(self.item(input.clone(), Path::new("")));
            }
        }
        items.retain(|item| !mask.is_some_and(|mask| is_same(&item.input, mask)));
        ensure!(!items.is_empty(), "the mask is the only picture");
        tell_apart(&mut items);
        refuse_collisions(&items)?;
        items.iter().try_for_each(|item| refuse_inputs(item, mask))?;
        let found = items.len();
        items.retain(|item| !(self.skip_existing && item.output.exists()));
        for item in &items {
            let folder = item.output.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        Ok(Plan::Many { skipped: found - items.len(), items })
    }

    /// Adds the pictures of a folder, whose results go to `below` in the output. `above` holds the folders that it is in, so
    /// that a link to one of them does not lead in a circle.
    fn add_folder(
        &self,
        folder: &Path,
        below: &Path,
        above: &mut Vec<PathBuf>,
        items: &mut Vec<Item>,
    ) -> anyhow::Result<()> {
        let context = || folder.display().to_string();
        let real = folder.canonicalize().with_context(context)?;
        if above.contains(&real) {
            return Ok(());
        }
        above.push(real);
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).with_context(context)? {
            paths.push(entry.with_context(context)?.path());
        }
        paths.sort();
        let before = items.len();
        let mut has_subfolder = false;
        for path in paths {
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if path.is_dir() {
                has_subfolder = true;
                // Skip the results of an earlier run.
                if self.recursive && !is_same(&path, &self.output) {
                    self.add_folder(&path, &below.join(name), above, items)?;
                }
            } else if is_picture(&path) {
                items.push(self.item(path, below));
            }
        }
        above.pop();
        if items.len() == before && below == Path::new("") {
            let hint = if has_subfolder && !self.recursive {
                "; add --recursive for its subfolders"
            } else {
                ""
            };
            bail!("{} contains no PNG, JPEG, WebP, HEIC or AVIF file{hint}", folder.display());
        }
        Ok(())
    }

    fn item(&self, input: PathBuf, below: &Path) -> Item {
        let format = self.format.unwrap_or_default();
        let mut name = input.file_stem().unwrap_or_default().to_owned();
        name.push(".");
        name.push(format.extension());
        Item { output: self.output.join(below).join(name), input, format }
    }
}

/// Refuses a result that would replace its picture or the mask.
fn refuse_inputs(Item { input, output, .. }: &Item, mask: Option<&Path>) -> anyhow::Result<()> {
    let is_input = input.as_os_str() != OsStr::new(STREAM) && is_same(input, output);
    let is_mask = mask.is_some_and(|mask| is_same(mask, output));
    let name = if is_input { "input" } else { "mask" };
    ensure!(!is_input && !is_mask, "{} is the {name}; choose another output", output.display());
    Ok(())
}

/// Gives results that would have the same name the whole names of their pictures: `a.png.webp` and `a.jpg.webp`.
fn tell_apart(items: &mut [Item]) {
    let mut counts = HashMap::new();
    for item in &*items {
        *counts.entry(item.output.clone()).or_insert(0) += 1;
    }
    for Item { input, output, format } in items.iter_mut().filter(|item| counts[&item.output] > 1) {
        let mut name = input.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(format.extension());
        *output = output.with_file_name(name);
    }
}

/// Refuses two pictures whose results have the same name, such as `a.png` in two folders.
fn refuse_collisions(items: &[Item]) -> anyhow::Result<()> {
    let mut inputs = HashMap::new();
    for Item { input, output, .. } in items {
        if let Some(other) = inputs.insert(output, input) {
            bail!(
                "the results of {} and {} would both be {}; process them apart",
                other.display(),
                input.display(),
                output.display()
            );
        }
    }
    Ok(())
}

/// Returns whether a file is a picture, by its name.
fn is_picture(path: &Path) -> bool {
    let is_heif = |name: &OsStr| {
        ["heic", "heif", "hif", "avif"].iter().any(|heif| name.eq_ignore_ascii_case(heif))
    };
    Format::of_name(path).is_some() || path.extension().is_some_and(is_heif)
}

/// Returns whether two paths lead to the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A folder with these empty files.
    fn folder(files: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn args(folder: &TempDir, inputs: &[&str], output: &str) -> PictureArgs {
        PictureArgs {
            inputs: inputs.iter().map(|input| folder.path().join(input)).collect(),
            output: folder.path().join(output),
            recursive: false,
            format: None,
            skip_existing: false,
        }
    }

    fn results(folder: &TempDir, plan: Plan) -> Vec<String> {
        let Plan::Many { items, .. } = plan else { panic!("one picture") };
        let name =
            |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
        items.into_iter().map(|item| name(item.output)).collect()
    }

    #[test]
    fn one_picture_becomes_one_file_of_the_format_that_its_name_says() {
        let folder = folder(&["a.jpg"]);
        for (output, format) in [
            ("out.png", Format::Png),
            ("out.JPG", Format::Jpg),
            ("out.webp", Format::Webp),
            ("out.jfif", Format::Jpg),
            ("out", Format::Png),
            ("out.v2", Format::Png),
        ] {
            let Plan::One(item) = args(&folder, &["a.jpg"], output).plan(None).unwrap() else {
                panic!("several pictures")
            };
            assert_eq!((item.output, item.format), (folder.path().join(output), format));
        }
        for name in ["out.gif", "out.AVIF", "out.tiff"] {
            let mut args = args(&folder, &["a.jpg"], name);
            let refused = args.plan(None).unwrap_err().to_string();
            assert!(refused.contains("cannot write a ."), "{refused}");
            args.format = Some(Format::Webp);
            assert!(args.plan(None).is_ok(), "{name}");
        }
        let same = args(&folder, &["a.jpg"], "a.jpg").plan(None).unwrap_err();
        assert!(same.to_string().ends_with("a.jpg is the input; choose another output"), "{same}");
    }

    #[test]
    fn several_pictures_and_folders_become_files_of_a_folder() {
        let files = [
            "in/b.PNG",
            "in/a.jpeg",
            "in/notes.txt",
            "in/.hidden.png",
            "in/deep/d.webp",
            "in/e.HEIC",
            "in/f.jfif",
            "in/g.JPE",
            "c.jpg",
        ];
        let folder = folder(&files);
        let mut args = args(&folder, &["in", "c.jpg"], "out");
        let plan = args.plan(None).unwrap();
        assert!(folder.path().join("out").is_dir());
        assert_eq!(
            results(&folder, plan),
            ["out/a.png", "out/b.png", "out/e.png", "out/f.png", "out/g.png", "out/c.png"]
        );
        args.recursive = true;
        args.format = Some(Format::Webp);
        let expected = [
            "out/a.webp",
            "out/b.webp",
            "out/deep/d.webp",
            "out/e.webp",
            "out/f.webp",
            "out/g.webp",
            "out/c.webp",
        ];
        assert_eq!(results(&folder, args.plan(None).unwrap()), expected);
        assert!(folder.path().join("out/deep").is_dir());
    }

    #[test]
    fn a_folder_may_have_the_name_of_a_file() {
        let folder = folder(&["a.jpg", "b.jpg", "old.png/c.png"]);
        for output in ["new.png/", "old.png"] {
            let plan = args(&folder, &["a.jpg", "b.jpg"], output).plan(None).unwrap();
            let name = output.trim_end_matches('/');
            assert_eq!(results(&folder, plan), ["a", "b"].map(|it| format!("{name}/{it}.png")));
        }
    }

    #[test]
    fn results_within_the_input_are_not_processed_again() {
        let folder = folder(&["in/a.jpg", "in/out/a.png"]);
        let args = PictureArgs { recursive: true, ..args(&folder, &["in"], "in/out") };
        assert_eq!(results(&folder, args.plan(None).unwrap()), ["in/out/a.png"]);
    }

    #[test]
    fn existing_results_are_left_out_on_request() {
        let folder = folder(&["in/a.jpg", "in/b.jpg", "out/a.png"]);
        let args = PictureArgs { skip_existing: true, ..args(&folder, &["in"], "out") };
        let plan = args.plan(None).unwrap();
        assert!(matches!(plan, Plan::Many { skipped: 1, .. }), "{plan:?}");
        assert_eq!(results(&folder, plan), ["out/b.png"]);
    }

    #[test]
    fn results_of_the_same_name_get_the_whole_names_of_their_pictures() {
        let folder = folder(&["in/a.jpg", "in/a.png", "in/b.png"]);
        let plan = args(&folder, &["in"], "out").plan(None).unwrap();
        assert_eq!(results(&folder, plan), ["out/a.jpg.png", "out/a.png.png", "out/b.png"]);
    }

    #[test]
    fn a_mask_among_the_pictures_is_left_out() {
        let folder = folder(&["in/a.jpg", "in/a.png", "in/b.jpg", "only/mask.png"]);
        let mask = folder.path().join("in/a.png");
        let plan = |inputs: &[&str], output, mask: &Path| {
            args(&folder, inputs, output).plan(Some(mask)).map(|plan| results(&folder, plan))
        };
        assert_eq!(plan(&["in"], "out", &mask).unwrap(), ["out/a.png", "out/b.png"]);
        assert_eq!(plan(&["in/b.jpg", "in/a.png"], "in", &mask).unwrap(), ["in/b.png"]);
        for (inputs, output) in [(&["in/b.jpg"][..], "in/a.png"), (&["in"], "in")] {
            let refused = plan(inputs, output, &mask).unwrap_err().to_string();
            assert!(refused.ends_with("a.png is the mask; choose another output"), "{refused}");
        }
        let only = folder.path().join("only/mask.png");
        let refused = plan(&["only"], "out", &only).unwrap_err().to_string();
        assert_eq!(refused, "the mask is the only picture");
    }

    #[test]
    fn what_cannot_be_done_is_refused_before_anything_is_written() {
        let files =
            ["in/a.jpg", "in/a.png", "more/a.png", "empty/notes.txt", "deep/x/y.png", "file"];
        let folder = folder(&files);
        for (inputs, output, expected) in [
            (&["in/a.png", "more"][..], "out", "would both be"),
            (&["empty"], "out", "contains no PNG, JPEG, WebP, HEIC or AVIF file"),
            (
                &["deep"],
                "out",
                "contains no PNG, JPEG, WebP, HEIC or AVIF file; add --recursive for its subfolders",
            ),
            (&["in/a.jpg", "in/a.png"], "file", "is a file; several pictures need a folder"),
            (&["in/a.jpg", "in/a.png"], "out.PNG", "out.PNG/"),
            (&["in"], "out.gif", "is the name of a file; several pictures need a folder, such as "),
            (&["in/a.png", "deep/x/y.png"], "in", "is the input; choose another output"),
        ] {
            let error = args(&folder, inputs, output).plan(None).unwrap_err().to_string();
            assert!(error.ends_with(expected) || error.contains(expected), "{error}");
        }
        for output in ["out", "out.PNG", "out.gif"] {
            assert!(!folder.path().join(output).exists(), "{output}");
        }
        let streams = PictureArgs { output: STREAM.into(), ..args(&folder, &["in"], "") };
        assert!(streams.plan(None).unwrap_err().to_string().contains("standard output"));
    }
}
