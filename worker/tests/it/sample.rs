//! Samples of paid upscales through a real worker process.

use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use retouch_catalog::Factor;
use retouch_core::queue::RequestError;
use retouch_core::sample::{SampleFailure, SampleReply, SampleRequest};
use retouch_standins::testing::{eventually, object_keys};
use sqlx::PgPool;

use crate::process::{Services, picture};

const TIMEOUT: Duration = Duration::from_mins(1);

/// Asks until a worker listens.
async fn ask(services: &Services, file: &[u8], factor: Factor) -> SampleReply {
    eventually(TIMEOUT, "a worker makes samples", || async {
        let request = SampleRequest::new(Bytes::copy_from_slice(file), factor, 12_000_000);
        match services.queue.request(request, Duration::from_secs(30), pending()).await {
            Ok(reply) => Some(reply),
            Err(RequestError::NoWorker) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_part_is_upscaled_without_a_job_and_costs_nothing(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let mut worker = services.worker().start();
    let part = picture(128, 96);
    for (factor, size) in [(Factor::X2, (256, 192)), (Factor::X4, (512, 384))] {
        let png = ask(&services, &part, factor).await.unwrap();
        let sample = image::load_from_memory(&png).unwrap().into_rgb8();
        assert_eq!(sample.dimensions(), size);
        let [middle, corner] =
            [(size.0 / 2, size.1 / 2), (2, 2)].map(|(x, y)| i32::from(sample.get_pixel(x, y)[0]));
        assert!((middle - 240).abs() < 12 && (corner - 20).abs() < 12, "{middle}, {corner}");
    }
    for bad in [&b"no picture at all"[..], &picture(129, 8)] {
        assert_eq!(ask(&services, bad, Factor::X2).await, Err(SampleFailure::Unreadable));
    }
    assert!(worker.is_alive());
    let jobs: i64 =
        sqlx::query_scalar("select count(*) from jobs").fetch_one(&services.pool).await.unwrap();
    assert_eq!(jobs, 0);
    assert_eq!(object_keys(&services.bucket.storage).await.len(), 0, "nothing is stored");
    services.assert_consistent().await;
}
