//! Writes a tool's result to a file, atomically, or to a device or pipe.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tempfile::NamedTempFile;

/// Stands for standard input or standard output.
pub const STREAM: &str = "-";

/// An output being written. A file is first written to a temporary file in the same folder, so that a partial file is
/// never visible. Dropping an unfinished output removes the temporary file.
pub struct Output {
    path: PathBuf,
    sink: Sink,
    size_bytes: u64,
}

enum Sink {
    File { partial: BufWriter<NamedTempFile>, target: PathBuf },
    Stream(BufWriter<File>),
}

impl Output {
    /// Opens an output, `-` for standard output, before anything is computed for it.
    ///
    /// # Errors
    /// If the path is a folder or not writable.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let sink = Self::sink(path).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self { path: path.to_owned(), sink, size_bytes: 0 })
    }

    fn sink(path: &Path) -> anyhow::Result<Sink> {
        if path == Path::new(STREAM) {
            let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            return Ok(Sink::Stream(BufWriter::new(stdout)));
        }
        // Follows links: the target is replaced, not the link.
        let found = fs::metadata(path);
        match &found {
            Ok(found) if found.is_dir() => bail!("this is a folder"),
            Ok(found) if !found.is_file() => {
                let stream = fs::OpenOptions::new().write(true).open(path)?;
                return Ok(Sink::Stream(BufWriter::new(stream)));
            }
            Err(_) if path.as_os_str().to_string_lossy().ends_with('/') => {
                bail!("this is a folder")
            }
            _ => {}
        }
        // A link may also lead to a file that does not exist yet.
        let target = fs::canonicalize(path)
            .or_else(|_| Ok::<_, io::Error>(path.with_file_name("").join(fs::read_link(path)?)))
            .unwrap_or_else(|_| path.to_owned());
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            bail!("there is no folder {}", folder.display());
        }
        // The permissions of any new file, less the process's umask.
        let partial = tempfile::Builder::new()
            .prefix(".retouch-")
            .suffix(".part")
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        if let Ok(replaced) = found {
            partial.as_file().set_permissions(replaced.permissions())?;
        }
        Ok(Sink::File { partial: BufWriter::new(partial), target })
    }

    /// Returns the path as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true for a device or pipe, which may be standard output.
    pub const fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream(_))
    }

    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.size_bytes += bytes.len() as u64;
        let written = match &mut self.sink {
            Sink::File { partial, .. } => partial.write_all(bytes),
            Sink::Stream(stream) => stream.write_all(bytes),
        };
        written.with_context(|| format!("writing {}", self.path.display()))
    }

    /// Flushes the output, renames a file to its final name, and returns the size in bytes.
    ///
    /// # Errors
    /// If that fails; the temporary file is removed.
    pub fn finish(self) -> anyhow::Result<u64> {
        let Self { path, sink, size_bytes } = self;
        let finish = || -> io::Result<()> {
            match sink {
                Sink::File { partial, target } => {
                    partial.into_inner()?.persist(target)?;
                    Ok(())
                }
                Sink::Stream(mut stream) => stream.flush(),
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
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let said = format!("{:#}", write(&missing.join("out.png")).unwrap_err());
        assert!(said.ends_with(&format!(": there is no folder {}", missing.display())), "{said}");
    }

    #[test]
    fn a_file_is_written_and_its_neighbors_do_not_change() {
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
        assert_eq!(mode(&at("out.png")), mode(&other), "like any other new file");
    }

    #[test]
    fn a_link_is_followed_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("target.png"), "old").unwrap();
        symlink("target.png", at("link.png")).unwrap();
        write(&at("link.png")).unwrap();
        assert!(fs::symlink_metadata(at("link.png")).unwrap().is_symlink());
        assert_eq!(fs::read(at("target.png")).unwrap(), b"picture");
    }

    #[test]
    fn a_link_to_a_file_that_does_not_exist_yet_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/target.png", at("link.png")).unwrap();
        write(&at("link.png")).unwrap();
        assert!(fs::symlink_metadata(at("link.png")).unwrap().is_symlink());
        assert_eq!(fs::read(at("deep/target.png")).unwrap(), b"picture");
        symlink("absent/target.png", at("lost.png")).unwrap();
        assert!(write(&at("lost.png")).is_err());
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private.png");
        fs::write(&path, "old").unwrap();
        for mode in [0o600, 0o664] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write(&path).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{found:o}");
        }
    }

    #[test]
    fn a_device_is_written_and_kept() {
        let null = Output::open(Path::new("/dev/null")).unwrap();
        assert!(null.is_stream());
        write(Path::new("/dev/null")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = write(Path::new("/dev/full")).unwrap_err();
        assert!(format!("{full:#}").starts_with("writing /dev/full: "), "{full:#}");
    }

    #[test]
    fn an_unwritable_path_is_refused_at_once_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "absent/out.png", "absent/"] {
            let path = folder.path().join(name);
            assert!(Output::open(&path).is_err(), "{}", path.display());
        }
        drop(Output::open(&folder.path().join("unfinished.png")).unwrap());
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
