//! Tests of the worker through its public functions, its command line and real processes.

mod batches;
mod bench_all;
mod bucket_owner;
mod contracts;
mod credentials;
mod cutouts;
mod demo;
mod diffusion;
mod engines;
mod following;
mod hot_swap;
mod jobs;
mod kept_tensors;
mod magic_fix;
mod manifests;
mod model_memory;
mod models_check;
mod onnx;
mod paintings;
mod passed_checks;
mod pipeline_swap;
mod pointing;
mod precision;
mod process;
mod run_pictures;
mod sample;
mod select;
mod upscale;
mod upscale_jobs;
mod warm_up;
mod watchdog;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use retouch_inference::faults::RunFaults;
use retouch_inference::manifest::Manifest;
use retouch_inference::memory::MemorySettings;
use retouch_inference::registry::{LoadError, ModelHandle, load_model};
use retouch_inference::session::{Batching, DevicePolicy, GpuSettings, Runtime, RuntimeSettings};
use tempfile::TempDir;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a workspace").to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("read") {
        let entry = entry.expect("read");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("read").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Returns a copy of a tiny model, in a folder to keep alive, whose manifest has each `from` replaced by its `to`.
fn altered(name: &str, changes: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join(name);
    copy(&repository().join("models/tiny").join(name), &folder);
    let manifest = folder.join("model.toml");
    let mut text = fs::read_to_string(&manifest).expect("read");
    for (from, to) in changes {
        assert!(text.contains(from), "the manifest of {name} has no {from:?}");
        text = text.replace(from, to);
    }
    fs::write(&manifest, text).expect("written");
    (dir, folder)
}

/// Reads a file in `worker/tests`.
fn fixture(path: &str) -> Vec<u8> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path))
}

/// Reads a photo in `pixels/tests/photos`.
fn photo(name: &str) -> Vec<u8> {
    read(&repository().join("pixels/tests/photos").join(name))
}

/// Reads a file in `pixels/tests/pictures`.
fn picture_file(name: &str) -> Vec<u8> {
    read(&repository().join("pixels/tests/pictures").join(name))
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests only")]
fn settings(batching: Batching, faults: RunFaults) -> RuntimeSettings {
    let library = std::env::var_os("ORT_DYLIB_PATH").map_or_else(
        || repository().join(".retouch/onnxruntime/libonnxruntime.so.1.31.1"),
        PathBuf::from,
    );
    assert!(
        library.is_file(),
        "run `scripts/models runtime` first: there is no {}",
        library.display()
    );
    let device = DevicePolicy::Cpu;
    RuntimeSettings {
        library,
        device,
        intra_threads: 2,
        gpu: GpuSettings::default(),
        batching,
        tile_memory_bytes: None,
        memory: MemorySettings::default(),
        passed_checks: None,
        faults,
    }
}

/// Returns the faults that these arguments of the worker inject.
fn faults(arguments: &[&str]) -> RunFaults {
    #[derive(Parser)]
    struct WithFaults {
        #[command(flatten)]
        faults: RunFaults,
    }
    WithFaults::parse_from([&["test"], arguments].concat()).faults
}

fn runtime() -> Runtime {
    let settings = settings(Batching::NONE, RunFaults::default());
    Runtime::start(settings).expect("ONNX Runtime starts")
}

async fn load(folder: &Path) -> Result<ModelHandle, LoadError> {
    load_model(Manifest::read(folder)?, runtime(), |_| {}).await
}

/// Loads the real small model. Panics if it was not fetched, so that tests never pass without running.
async fn u2netp() -> ModelHandle {
    let folder = repository().join("models/u2netp");
    assert!(folder.join("u2netp.onnx").is_file(), "run `scripts/models fetch u2netp` first");
    load(&folder).await.expect("u2netp loads")
}

async fn tiny() -> ModelHandle {
    load(&repository().join("models/tiny/segment")).await.expect("the tiny model loads")
}
