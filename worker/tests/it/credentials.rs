//! Content Credentials of results, through real worker processes and on the command line.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use retouch_catalog::{Factor, Tier, Tool};
use retouch_core::jobs::{self, JobState, NewJob};
use retouch_core::results;
use retouch_core::{Clock, ImageId, JobId, workers};
use retouch_credentials::{Authority, Leaf, Report, Signer, SourceType, State, Verifier};
use retouch_standins::testing::{ISSUER, sign_in};
use sqlx::PgPool;
use tempfile::TempDir;

use crate::magic_fix::{disc, submit as submit_fix};
use crate::process::{Services, WorkerSettings, picture};
use crate::repository;

const TIMEOUT: Duration = Duration::from_mins(1);
/// The radius of what Magic Fix is asked to repaint, in pixels.
const MARKED: u32 = 16;
/// Beyond this distance from its center, in pixels, nothing may change.
const REACH: f64 = 48.0;

/// A key in a folder, and what trusts it.
struct Key {
    folder: TempDir,
    verifier: Verifier,
}

impl Key {
    fn new() -> Self {
        let now = Clock::system().now();
        let authority = Authority::new("Example Ltd", now).unwrap();
        let Leaf { chain, key } = authority.issue("Example Ltd", now).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("chain"), &chain).unwrap();
        fs::write(folder.path().join("key"), &key).unwrap();
        let signer = Signer::new(&chain, &key, None, now).unwrap();
        Self { folder, verifier: Verifier::new(Some(signer.chain()), None).unwrap() }
    }

    fn sign(&self, worker: WorkerSettings) -> WorkerSettings {
        worker
            .set("RETOUCH_CREDENTIALS_CHAIN_FILE", self.folder.path().join("chain"))
            .set("RETOUCH_CREDENTIALS_KEY_FILE", self.folder.path().join("key"))
    }

    /// Returns what the result of a job says, and its pixels.
    async fn read(&self, services: &Services, job: JobId) -> (Report, image::RgbaImage) {
        let made = results::for_job(&services.pool, job).await.unwrap();
        let png = services.bucket.storage.get(&made[0].object_key).await.unwrap();
        assert_eq!(png.len() as i64, made[0].size_bytes);
        let pixels = image::load_from_memory(&png).unwrap().into_rgba8();
        let report = self.verifier.read(&png);
        let source = report.source.as_ref().map(SourceType::uri);
        assert_eq!(made[0].source, source, "what is recorded");
        (report, pixels)
    }
}

async fn upscale(services: &Services, image: ImageId) -> JobId {
    let new = NewJob {
        owner: Some(services.ada),
        image,
        tool: Tool::Upscale(Factor::X4),
        tier: Tier::Paid,
        idempotency_key: None,
        fix: None,
        queue_limit: None,
    };
    let job = jobs::submit(&services.pool, &new).await.unwrap().into_job();
    services.queue.ring(job.class(), job.id).await.unwrap();
    job.id
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn every_tool_signs_its_results_and_their_pixels_stay_the_same(pool: PgPool) {
    let services = Services::start(pool, 20).await;
    let key = Key::new();
    let run_all = async |setting: &str| {
        let _worker = key.sign(services.worker()).set("RETOUCH_CREDENTIALS", setting).start();
        let image = services.image().await;
        let jobs = [
            services.submit_on(image).await,
            upscale(&services, image).await,
            submit_fix(&services, "a red circle", &disc(160, 120, MARKED)).await,
            submit_fix(&services, "remove it", &disc(160, 120, MARKED)).await,
        ];
        let earlier = services.count(JobState::Done).await;
        services.until(JobState::Done, 4.max(earlier), TIMEOUT).await;
        for job in jobs {
            retouch_standins::testing::eventually(TIMEOUT, "the job is done", || async {
                let state = jobs::get(&services.pool, job).await.unwrap().unwrap().state;
                (state == JobState::Done).then_some(())
            })
            .await;
        }
        jobs
    };
    let (marked, plain) = (run_all("all").await, run_all("off").await);
    let enhanced = SourceType::algorithmically_enhanced();
    let expected = [
        ("c2pa.edited", enhanced.clone(), false),
        ("c2pa.resized", enhanced, false),
        ("c2pa.edited", SourceType::composite_with_trained_media(), true),
        ("c2pa.edited", SourceType::composite_synthetic(), true),
    ];
    for ((marked, plain), (action, source, is_fix)) in marked.into_iter().zip(plain).zip(expected) {
        let (report, pixels) = key.read(&services, marked).await;
        assert_eq!(report.state, State::Trusted, "{action}: {report:?}");
        assert_eq!((&report.problems[..], report.source), (&[][..], Some(source)));
        let claim = report.claim.unwrap();
        assert_eq!(
            (claim.actions[0].action.as_str(), claim.actions[1].action.as_str()),
            ("c2pa.opened", action)
        );
        assert!(claim.ingredients.len() == 1 && claim.ingredients[0].is_parent);
        let (report, unmarked) = key.read(&services, plain).await;
        assert_eq!((report.state, report.source), (State::Absent, None));
        assert_eq!(pixels.dimensions(), unmarked.dimensions());
        let differ = |(x, y): (u32, u32)| pixels.get_pixel(x, y) != unmarked.get_pixel(x, y);
        // Each Magic Fix paints inside the disc from a seed of its own.
        let is_painted = |(x, y): (u32, u32)| {
            is_fix && f64::from(x.abs_diff(80)).hypot(f64::from(y.abs_diff(60))) < REACH
        };
        let all = (0..pixels.height()).flat_map(|y| (0..pixels.width()).map(move |x| (x, y)));
        let changed = all.filter(|at| differ(*at) && !is_painted(*at)).count();
        assert_eq!(changed, 0, "{action}: pixels of the marked result");
    }
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_large_upscale_is_signed_while_it_is_uploaded_in_parts(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let key = Key::new();
    let _worker = key.sign(services.worker()).set("RETOUCH_CREDENTIALS", "all").start();
    let image = crate::upscale_jobs::noisy_image(&services).await;
    let job = upscale(&services, image).await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    let (report, pixels) = key.read(&services, job).await;
    assert_eq!(report.state, State::Trusted, "{report:?}");
    assert_eq!(pixels.dimensions(), (9600, 7200));
    let made = &results::for_job(&services.pool, job).await.unwrap()[0];
    assert!(made.size_bytes > 16 << 20, "several parts");
    for copy in [Some(&made.thumbnail_key), made.preview_key.as_ref()].into_iter().flatten() {
        let copy = services.bucket.storage.get(copy).await.unwrap();
        assert_eq!(key.verifier.read(&copy).source, Some(SourceType::algorithmically_enhanced()));
    }
    assert_eq!(services.bucket.unfinished_parts(), 0);
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn without_a_required_key_nothing_generated_is_delivered_or_charged(pool: PgPool) {
    let services = Services::start(pool, 6).await;
    let _worker = services.worker().set("RETOUCH_CREDENTIALS_REQUIRED", "true").start();
    let fix = submit_fix(&services, "a red circle", &disc(160, 120, 16)).await;
    let cutout = services.submit().await;
    services.until(JobState::Failed, 1, TIMEOUT).await;
    services.until(JobState::Done, 1, TIMEOUT).await;
    let failed = jobs::get(&services.pool, fix).await.unwrap().unwrap();
    assert_eq!(failed.failure.unwrap().code, "credentials_unavailable");
    let done = jobs::get(&services.pool, cutout).await.unwrap().unwrap();
    assert_eq!(done.state, JobState::Done, "jobs without signatures continue");
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (30 - 5, 0));
    let live = workers::live(&services.pool).await.unwrap();
    let [problem] = &live[0].problems[..] else { panic!("{:?}", live[0].problems) };
    assert_eq!((problem.model.as_str(), problem.step.as_str()), ("content credentials", "signing"));
    assert!(problem.reason.contains("Nothing that must be signed is delivered"));
    services.assert_consistent().await;
}

fn worker(arguments: &[&str], key: &Key) -> Output {
    Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
        .args(arguments)
        .env("RETOUCH_DEVICE", "cpu")
        .env("RETOUCH_MODELS_DIR", repository().join("models/tiny"))
        .env("ORT_DYLIB_PATH", repository().join(".retouch/onnxruntime/libonnxruntime.so.1.31.1"))
        .env("RETOUCH_CREDENTIALS_CHAIN_FILE", key.folder.path().join("chain"))
        .env("RETOUCH_CREDENTIALS_KEY_FILE", key.folder.path().join("key"))
        .output()
        .unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn without_xmp(png: &[u8]) -> (Vec<u8>, String) {
    let (start, mut rest) = png.split_at(8);
    let (mut file, mut xmp) = (start.to_vec(), String::new());
    while let Some((length, _)) = rest.split_first_chunk() {
        let chunk;
        (chunk, rest) = rest.split_at(12 + u32::from_be_bytes(*length) as usize);
        if chunk[4..8] == *b"iTXt" {
            xmp += &String::from_utf8_lossy(chunk);
        } else {
            file.extend(chunk);
        }
    }
    (file, xmp)
}

#[test]
fn the_command_line_reads_what_a_manifest_says_of_its_picture() {
    let key = Key::new();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| path(folder.path(), name);
    fs::write(at("in.png"), picture(160, 120)).unwrap();
    fs::write(at("mask.png"), disc(160, 120, 16)).unwrap();
    let (input, mask, fixed) = (at("in.png"), at("mask.png"), at("fixed.png"));
    let fix = ["run", "fix", &input, "--mask", &mask, "--prompt", "a red circle", "-o", &fixed];
    assert!(worker(&fix, &key).status.success());
    // Another program's picture has a manifest and no XMP.
    fs::write(&fixed, without_xmp(&fs::read(&fixed).unwrap()).0).unwrap();
    let cut = at("cut.png");
    let output = worker(&["run", "remove-bg", &fixed, "-o", &cut, "--model", "segment"], &key);
    assert!(output.status.success(), "{output:?}");
    let (_, xmp) = without_xmp(&fs::read(&cut).unwrap());
    assert!(xmp.contains("compositeWithTrainedAlgorithmicMedia"), "{xmp}");
}

#[test]
fn the_command_line_marks_results_and_shows_marks() {
    let key = Key::new();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| path(folder.path(), name);
    fs::write(at("in.png"), picture(160, 120)).unwrap();
    fs::write(at("mask.png"), disc(160, 120, 16)).unwrap();
    let run = |arguments: &[&str]| {
        let output = worker(arguments, &key);
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said.into_owned())
    };
    let (input, fixed, webp) = (at("in.png"), at("fixed.png"), at("cut.webp"));
    let (mask, plain) = (at("mask.png"), at("plain.png"));
    let fix = ["run", "fix", &input, "--mask", &mask, "--prompt", "a red circle", "-o", &fixed];
    let (is_good, said) = run(&fix);
    assert!(is_good, "{said}");
    let (is_good, said) = run(&["run", "remove-bg", &fixed, "-o", &webp, "--model", "segment"]);
    assert!(is_good, "{said}");
    let (is_good, said) = run(&["run", "remove-bg", &input, "-o", &plain, "--model", "segment"]);
    assert!(is_good, "{said}");

    let (is_good, said) = run(&["credentials", &fixed, &webp, &plain]);
    assert!(is_good, "{said}");
    let [of_fixed, of_webp, of_plain] = [&fixed, &webp, &plain].map(|file| {
        let start = said.find(file.as_str()).unwrap();
        let rest = &said[start + file.len()..];
        let end = [&fixed, &webp, &plain].iter().filter_map(|next| rest.find(next.as_str())).min();
        &rest[..end.unwrap_or(rest.len())]
    });
    assert!(of_fixed.contains("valid, by a trusted signer"), "{said}");
    assert!(of_fixed.contains("signed by Retouch, Example Ltd, this installation"), "{said}");
    assert!(of_fixed.contains("compositeWithTrainedAlgorithmicMedia"), "{said}");
    // A cutout of a generated picture keeps its mark, as a WebP too.
    assert!(of_webp.contains("valid, by a trusted signer"), "{said}");
    assert!(of_webp.contains("Removed the background") && of_webp.contains("Repainted"), "{said}");
    assert!(of_plain.contains("carries no Content Credentials"), "{said}");

    let mut damaged = fs::read(&fixed).unwrap();
    let end = damaged.len() - 40;
    damaged[end] ^= 1;
    fs::write(&fixed, damaged).unwrap();
    let (is_good, said) = run(&["credentials", &fixed]);
    assert!(!is_good && said.contains("NOT VALID"), "{said}");
    assert!(said.contains("assertion.dataHash.mismatch"), "{said}");
    fs::write(&fixed, b"no picture").unwrap();
    let (is_good, said) = run(&["credentials", &fixed, &at("missing.png"), &plain]);
    assert!(!is_good && said.contains("is not a PNG, JPEG, WebP, HEIC, or AVIF"), "{said}");
    assert!(said.contains("carries no Content Credentials"), "the last file, too: {said}");
    assert!(said.ends_with("2 files could not be read\n"), "{said}");
}
