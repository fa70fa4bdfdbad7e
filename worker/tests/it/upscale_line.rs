//! Upscales through real worker processes: paid, stored in parts, killed, called off, and bounded in memory.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::BufWriter;
use std::process::Command;
use std::time::Duration;

use retouch_catalog::{CountUnit, Factor, Tier, Tool};
use retouch_core::jobs::{self, JobState, NewJob};
use retouch_core::results;
use retouch_core::{ImageId, JobId, janitor, users};
use retouch_standins::testing::{ISSUER, eventually, image};
use sqlx::PgPool;
use tokio::sync::broadcast;

use crate::process::Line;
use crate::repository;

const PATIENCE: Duration = Duration::from_mins(1);

/// A picture that compresses badly: fourfold it is more than two parts of an upload.
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

async fn noisy_image(line: &Line) -> ImageId {
    let picture = noisy(2400, 1800);
    image(&line.pool, Some(&line.bucket.storage), line.ada, &picture).await
}

async fn submit(line: &Line, image: ImageId, factor: Factor) -> JobId {
    let new = NewJob {
        owner: Some(line.ada),
        image,
        tool: Tool::Upscale(factor),
        tier: Tier::Paid,
        idempotency_key: None,
        fix: None,
        most_waiting: None,
    };
    let job = jobs::submit(&line.pool, &new).await.unwrap().into_job();
    line.queue.ring(job.class(), job.id).await.unwrap();
    job.id
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upscale_is_stored_in_parts_and_paid_for(pool: PgPool) {
    let line = Line::start(pool, 4).await;
    let (sender, mut news) = broadcast::channel(4096);
    let queue = line.queue.clone();
    tokio::spawn(async move { queue.listen(sender).await });
    let _worker = line.worker().start();
    let image = noisy_image(&line).await;
    let jobs =
        [(submit(&line, image, Factor::X4).await, 4), (submit(&line, image, Factor::X2).await, 2)];
    line.until(JobState::Done, 2, PATIENCE).await;
    for (job, factor) in jobs {
        let made = &results::of_job(&line.pool, job).await.unwrap()[0];
        assert_eq!((made.width, made.height), (2400 * factor, 1800 * factor));
        assert_eq!((made.factor, made.model.as_str()), (Some(factor as i16), "upscale"));
        let png = line.bucket.storage.get(&made.object_key).await.unwrap();
        assert_eq!(png.len() as i64, made.size_bytes);
        let size =
            image::ImageReader::new(std::io::Cursor::new(png)).with_guessed_format().unwrap();
        assert_eq!(size.into_dimensions().unwrap(), (2400 * factor as u32, 1800 * factor as u32));
        let thumbnail = line.bucket.storage.get(&made.thumbnail_key).await.unwrap();
        assert_eq!(image::load_from_memory(&thumbnail).unwrap().width(), 512);
    }
    let ada = users::sign_in(&line.pool, ISSUER, "ada").await.unwrap();
    assert_eq!((ada.credits, ada.reserved), (20 - 6 - 3, 0));
    assert_eq!(line.bucket.unfinished_parts(), 0);
    let mut fractions = Vec::new();
    while let Ok(heard) = news.try_recv() {
        if let Some(at) =
            heard.progress.filter(|at| heard.job == jobs[0].0 && at.eta_secs.is_some())
        {
            let tiles = at.count.expect("tiles are counted");
            assert!(tiles.unit == CountUnit::Tiles && tiles.done <= tiles.total);
            fractions.push(at.fraction);
        }
    }
    assert!(fractions.len() > 10, "progress was told for each tile: {fractions:?}");
    assert!(fractions.is_sorted());
    line.assert_nothing_lost_nothing_twice().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_killed_in_the_middle_of_an_upload_leaves_no_parts(pool: PgPool) {
    let line = Line::start(pool, 4).await;
    let mut worker = line.worker().start();
    let image = noisy_image(&line).await;
    submit(&line, image, Factor::X4).await;
    let parts = || async { (line.bucket.unfinished_parts() > 0).then_some(()) };
    eventually(PATIENCE, "a part was sent", parts).await;
    worker.restart();
    line.until(JobState::Done, 1, PATIENCE).await;
    janitor::round(&line.pool, &line.bucket.storage).await.unwrap();
    assert_eq!(line.bucket.unfinished_parts(), 0);
    let left: i64 = sqlx::query_scalar("select count(*) from unfinished_uploads")
        .fetch_one(&line.pool)
        .await
        .unwrap();
    assert_eq!(left, 0);
    line.assert_nothing_lost_nothing_twice().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upscale_that_is_called_off_stops_and_leaves_nothing(pool: PgPool) {
    let line = Line::start(pool, 4).await;
    let _worker = line.worker().start();
    let image = noisy_image(&line).await;
    let job = submit(&line, image, Factor::X4).await;
    let parts = || async { (line.bucket.unfinished_parts() > 0).then_some(()) };
    eventually(PATIENCE, "a part was sent", parts).await;
    assert!(jobs::cancel(&line.pool, job).await.unwrap());
    line.queue.tell(retouch_core::queue::JobNews::changed(job)).await.unwrap();
    let none = || async { (line.bucket.unfinished_parts() == 0).then_some(()) };
    eventually(PATIENCE, "the upload was aborted", none).await;
    let stored = || async {
        let keys = line.bucket.storage.keys().await.unwrap();
        keys.iter().all(|key| !key.starts_with("results/")).then_some(())
    };
    eventually(PATIENCE, "no object stays", stored).await;
    let ada = users::sign_in(&line.pool, ISSUER, "ada").await.unwrap();
    assert_eq!((ada.credits, ada.reserved), (20, 0));
}

/// What a run takes beside the decoded picture does not grow with the picture's height: up to 36 megapixels
/// in, 576 out.
#[test]
fn memory_is_that_of_the_picture_and_a_few_bands() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut beside = Vec::new();
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
            // What was freed goes back at once. By default glibc keeps it, a different amount at each run,
            // and it is what the tool holds that must not grow.
            .env("MALLOC_MMAP_THRESHOLD_", "1048576")
            .current_dir(repository())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
        assert!(said.contains(&format!("24000 × {}", height * 4)), "{said}");
        let peak = said.lines().find_map(|line| line.strip_prefix("peak memory")).unwrap();
        let peak: f64 = peak.trim().trim_end_matches(" MiB").parse().unwrap();
        let decoded = f64::from(6000 * height * 3) / f64::from(1 << 20);
        println!(
            "6000 × {height}: peak {peak:.0} MiB, {:.0} MiB beside the picture",
            peak - decoded
        );
        beside.push(peak - decoded);
    }
    let mean = beside.iter().sum::<f64>() / 3.0;
    assert!(beside.iter().all(|value| (value / mean - 1.0).abs() <= 0.1), "{beside:?} MiB");
}
