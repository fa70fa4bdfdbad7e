//! Where a tool's result goes: a file, whole or not at all, or a device or pipe.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tempfile::NamedTempFile;

/// A result on its way out. A file is written under another name beside its place first, so that nobody ever sees half
/// of one; what is not finished is removed.
pub struct Output {
    path: PathBuf,
    place: Place,
    size_bytes: u64,
}

enum Place {
    File { partial: BufWriter<NamedTempFile>, target: PathBuf },
    Stream(BufWriter<File>),
}

impl Output {
    /// Opens a place to write to, before anything is computed for it.
    ///
    /// # Errors
    /// When it is a folder, or nothing can be written there.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let place = Self::place(path).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { path: path.to_owned(), place, size_bytes: 0 })
    }

    fn place(path: &Path) -> anyhow::Result<Place> {
        // Behind a link is what counts: the link stays.
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => bail!("this is a folder"),
            Ok(there) if !there.is_file() => {
                let stream = fs::OpenOptions::new().write(true).open(path)?;
                return Ok(Place::Stream(BufWriter::new(stream)));
            }
            Err(_) if path.as_os_str().to_string_lossy().ends_with('/') => {
                bail!("this is a folder")
            }
            _ => {}
        }
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        // As readable as any other new file: the process's mask takes away what it shall not be.
        let partial = tempfile::Builder::new()
            .prefix(".retouch-")
            .suffix(".part")
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        Ok(Place::File { partial: BufWriter::new(partial), target })
    }

    /// Its name, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether what is printed beside it would get into it.
    pub const fn is_stream(&self) -> bool {
        matches!(self.place, Place::Stream(_))
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.size_bytes += bytes.len() as u64;
        let written = match &mut self.place {
            Place::File { partial, .. } => partial.write_all(bytes),
            Place::Stream(stream) => stream.write_all(bytes),
        };
        written.with_context(|| format!("writing {}", self.path.display()))
    }

    /// Puts the file in its place; its size in bytes.
    ///
    /// # Errors
    /// When that fails; nothing is left behind then.
    pub fn finish(self) -> anyhow::Result<u64> {
        let Self { path, place, size_bytes } = self;
        let finish = || -> io::Result<()> {
            match place {
                Place::File { partial, target } => {
                    partial.into_inner()?.persist(target)?;
                    Ok(())
                }
                Place::Stream(mut stream) => stream.flush(),
            }
        };
        finish().with_context(|| format!("writing {}", path.display()))?;
        Ok(size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path) -> anyhow::Result<u64> {
        let mut output = Output::open(path)?;
        output.write(b"picture")?;
        output.finish()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_comes_whole_and_beside_it_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("out.png.part"), "mine").unwrap();
        assert_eq!(write(&at("out.png")).unwrap(), 7);
        assert_eq!(fs::read(at("out.png")).unwrap(), b"picture");
        assert_eq!(fs::read(at("out.png.part")).unwrap(), b"mine");
        assert_eq!(names(folder.path()), ["out.png", "out.png.part"]);
        let other = at("other");
        fs::write(&other, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&at("out.png")), mode(&other), "as any other new file");
    }

    #[test]
    fn a_link_stays_and_what_it_names_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("target.png"), "old").unwrap();
        symlink("target.png", at("link.png")).unwrap();
        write(&at("link.png")).unwrap();
        assert!(fs::symlink_metadata(at("link.png")).unwrap().is_symlink());
        assert_eq!(fs::read(at("target.png")).unwrap(), b"picture");
    }

    #[test]
    fn a_device_stays_one() {
        let null = Output::open(Path::new("/dev/null")).unwrap();
        assert!(null.is_stream());
        write(Path::new("/dev/null")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = write(Path::new("/dev/full")).unwrap_err();
        assert!(format!("{full:#}").starts_with("writing /dev/full: "), "{full:#}");
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for place in ["", "absent/out.png", "absent/"] {
            let path = folder.path().join(place);
            assert!(Output::open(&path).is_err(), "{}", path.display());
        }
        drop(Output::open(&folder.path().join("given-up.png")).unwrap());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
