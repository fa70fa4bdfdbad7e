//! Upscale jobs through real worker processes: debits, multipart uploads, crashes, cancellation and memory.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io::BufWriter;
use std::process::Command;
use std::time::Duration;

use retouch_catalog::{CountUnit, Factor, Tier, Tool};
use retouch_core::jobs::{self, JobState, NewJob};
use retouch_core::results;
use retouch_core::{ImageId, JobId, janitor};
use retouch_standins::testing::{ISSUER, eventually, image, object_keys, sign_in};
use sqlx::PgPool;
use tokio::sync::broadcast;

use crate::process::Services;
use crate::repository;

const TIMEOUT: Duration = Duration::from_mins(1);

/// Encodes a picture that compresses badly: upscaled by 4 it takes more than two parts of a multipart upload.
fn noisy(width: u32, height: u32) -> Vec<u8> {
    let mut state = 7_u32;
    let pixels = image::RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [r, g, b, _] = state.to_be_bytes();
        image::Rgb([r, g, b])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

pub async fn noisy_image(services: &Services) -> ImageId {
    let picture = noisy(2400, 1800);
    image(&services.pool, Some(&services.bucket.storage), services.ada, &picture).await
}

async fn submit(services: &Services, image: ImageId, factor: Factor) -> JobId {
    let new = NewJob {
        owner: Some(services.ada),
        image,
        tool: Tool::Upscale(factor),
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
async fn an_upscale_is_uploaded_in_parts_and_paid_for(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let (sender, mut events) = broadcast::channel(4096);
    let queue = services.queue.clone();
    tokio::spawn(async move { queue.forward_events(sender).await });
    let _worker = services.worker().start();
    let image = noisy_image(&services).await;
    let jobs = [
        (submit(&services, image, Factor::X4).await, 4),
        (submit(&services, image, Factor::X2).await, 2),
    ];
    services.until(JobState::Done, 2, TIMEOUT).await;
    for (job, factor) in jobs {
        let made = &results::for_job(&services.pool, job).await.unwrap()[0];
        assert_eq!((made.width, made.height), (2400 * factor, 1800 * factor));
        assert_eq!((made.factor, made.model.as_str()), (Some(factor as i16), "upscale"));
        let png = services.bucket.storage.get(&made.object_key).await.unwrap();
        assert_eq!(png.len() as i64, made.size_bytes);
        let size =
            image::ImageReader::new(std::io::Cursor::new(png)).with_guessed_format().unwrap();
        assert_eq!(size.into_dimensions().unwrap(), (2400 * factor as u32, 1800 * factor as u32));
        let thumbnail = services.bucket.storage.get(&made.thumbnail_key).await.unwrap();
        assert_eq!(image::load_from_memory(&thumbnail).unwrap().width(), 512);
    }
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (20 - 6 - 3, 0));
    assert_eq!(services.bucket.unfinished_parts(), 0);
    let mut fractions = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Some(progress) =
            event.progress.filter(|at| event.job == jobs[0].0 && at.eta_secs.is_some())
        {
            let tiles = progress.count.expect("tiles are counted");
            assert!(tiles.unit == CountUnit::Tiles && tiles.done <= tiles.total);
            fractions.push(progress.fraction);
        }
    }
    assert!(fractions.len() > 10, "progress after each tile: {fractions:?}");
    assert!(fractions.is_sorted());
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_killed_during_an_upload_leaves_no_parts(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let mut worker = services.worker().start();
    let image = noisy_image(&services).await;
    submit(&services, image, Factor::X4).await;
    let parts = || async { (services.bucket.unfinished_parts() > 0).then_some(()) };
    eventually(TIMEOUT, "a part was sent", parts).await;
    worker.restart();
    services.until(JobState::Done, 1, TIMEOUT).await;
    janitor::round(&services.pool, &services.bucket.storage).await.unwrap();
    assert_eq!(services.bucket.unfinished_parts(), 0);
    let left: i64 = sqlx::query_scalar("select count(*) from unfinished_uploads")
        .fetch_one(&services.pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_canceled_upscale_stops_and_leaves_nothing(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let _worker = services.worker().start();
    let image = noisy_image(&services).await;
    let job = submit(&services, image, Factor::X4).await;
    let parts = || async { (services.bucket.unfinished_parts() > 0).then_some(()) };
    eventually(TIMEOUT, "a part was sent", parts).await;
    assert!(jobs::cancel(&services.pool, job).await.unwrap());
    services.queue.publish(retouch_core::queue::JobEvent::changed(job)).await.unwrap();
    let none = || async { (services.bucket.unfinished_parts() == 0).then_some(()) };
    eventually(TIMEOUT, "the upload was aborted", none).await;
    let stored = || async {
        let keys = object_keys(&services.bucket.storage).await;
        keys.iter().all(|key| !key.starts_with("results/")).then_some(())
    };
    eventually(TIMEOUT, "no object stays", stored).await;
    let ada = sign_in(&services.pool, ISSUER, "ada").await;
    assert_eq!((ada.credits, ada.reserved), (20, 0));
}

/// The memory besides the decoded picture does not grow with the picture's height, up to 36 megapixels of input and 576
/// of output.
#[test]
fn memory_is_bounded_by_the_picture_and_a_few_bands() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut extra = Vec::new();
    for height in [1500, 3000, 6000] {
        let picture = folder.path().join(format!("{height}.png"));
        let pixels = image::RgbImage::from_fn(6000, height, |x, y| {
            image::Rgb([(x / 24) as u8, (y / 24) as u8, (x / 97 * (y / 89)) as u8])
        });
        let mut file = BufWriter::new(std::fs::File::create(&picture).unwrap());
        pixels.write_to(&mut file, image::ImageFormat::Png).unwrap();
        drop((pixels, file));
        let run = Command::new(env!("CARGO_BIN_EXE_retouch-worker"))
            .args(["run", "upscale", "--factor", "4", "--model", "upscale", "-o"])
            .args([&folder.path().join("out.png"), &picture])
            .env("RETOUCH_MODELS_DIR", repository().join("models/tiny"))
            .env("RETOUCH_DEVICE", "cpu")
            // Returns freed memory to the system at once. By default glibc keeps an amount that differs between runs.
            .env("MALLOC_MMAP_THRESHOLD_", "1048576")
            .current_dir(repository())
            .output()
            .unwrap();
        let summary = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{summary}{}", String::from_utf8_lossy(&run.stderr));
        assert!(summary.contains(&format!("24000 × {}", height * 4)), "{summary}");
        let peak = summary.lines().find_map(|line| line.strip_prefix("peak memory")).unwrap();
        let peak: f64 = peak.trim().trim_end_matches(" MiB").parse().unwrap();
        let decoded = f64::from(6000 * height * 3) / f64::from(1 << 20);
        println!(
            "6000 × {height}: peak {peak:.0} MiB, {:.0} MiB besides the picture",
            peak - decoded
        );
        extra.push(peak - decoded);
    }
    let mean = extra.iter().sum::<f64>() / 3.0;
    assert!(extra.iter().all(|value| (value / mean - 1.0).abs() <= 0.1), "{extra:?} MiB");
}
