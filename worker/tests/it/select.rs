//! Click to select through a real worker process, and on photos.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use retouch_core::ImageId;
use retouch_core::queue::RequestError;
use retouch_core::selection::{
    Clicks, ImageBox, ImagePoint, SelectionFailure, SelectionReply, SelectionRequest,
};
use retouch_core::storage::image_key;
use retouch_standins::testing::{eventually, image};
use retouch_worker::requests::{self, Answerer};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::process::{Services, picture};

const TIMEOUT: Duration = Duration::from_mins(1);

/// Asks until a worker listens.
async fn ask(
    services: &Services,
    image: ImageId,
    size: (u32, u32),
    clicks: Clicks,
) -> SelectionReply {
    eventually(TIMEOUT, "a worker selects", || async {
        let key = image_key(image);
        let request = SelectionRequest::new(image, key, size, clicks.clone());
        match services.queue.request(request, Duration::from_secs(10), pending()).await {
            Ok(reply) => Some(reply),
            Err(RequestError::NoWorker) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

fn click(x: u32, y: u32) -> Clicks {
    Clicks { positive: vec![ImagePoint { x, y }], ..Clicks::default() }
}

/// Returns whether each pixel of a mask is selected.
fn selected(reply: SelectionReply, size: (u32, u32)) -> impl Fn(u32, u32) -> bool {
    let mask = image::load_from_memory(&reply.unwrap()).unwrap().into_luma8();
    assert_eq!(mask.dimensions(), size);
    move |x, y| mask.get_pixel(x, y).0[0] == 255
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_click_selects_to_the_edge_of_what_is_there_and_costs_nothing(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let _worker = services.worker().start();
    // The bright rectangle covers the middle half of each side.
    let size = (640, 480);
    let file = picture(size.0, size.1);
    let stored = image(&services.pool, Some(&services.bucket.storage), services.ada, &file).await;
    let on = selected(ask(&services, stored, size, click(320, 240)).await, size);
    assert!(on(320, 240) && on(164, 124) && on(476, 356), "up to the corners");
    assert!(!on(156, 240) && !on(320, 116) && !on(484, 240) && !on(320, 364));
    let half = ImageBox { x: 0, y: 0, width: 320, height: 480 };
    let boxed = Clicks { area: Some(half), ..Clicks::default() };
    let on = selected(ask(&services, stored, size, boxed).await, size);
    assert!(on(200, 240) && !on(330, 240), "nothing outside the box");
    let subject = Clicks { subject: true, ..Clicks::default() };
    let on = selected(ask(&services, stored, size, subject).await, size);
    assert!(on(320, 240) && !on(20, 20));
    let jobs: i64 =
        sqlx::query_scalar("select count(*) from jobs").fetch_one(&services.pool).await.unwrap();
    assert_eq!(jobs, 0);
    services.assert_consistent().await;
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn missing_and_damaged_pictures_are_reported_and_the_next_click_works(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let mut worker = services.worker().start();
    let storage = &services.bucket.storage;
    let broken = image(&services.pool, Some(storage), services.ada, b"no picture at all").await;
    let size = (64, 48);
    let reply = ask(&services, broken, size, click(3, 4)).await;
    assert_eq!(reply, Err(SelectionFailure::ImageUnreadable));
    let reply = ask(&services, ImageId::new(), size, click(3, 4)).await;
    assert_eq!(reply, Err(SelectionFailure::ImageMissing));
    let good = services.image().await;
    let on = selected(ask(&services, good, size, click(32, 24)).await, size);
    assert!(on(32, 24));
    assert!(worker.is_alive());
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_worker_without_memory_for_it_does_not_select(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let _worker = services.worker().set("RETOUCH_SELECT_MEMORY_MIB", "0").start();
    services.submit().await;
    services.until(retouch_core::jobs::JobState::Done, 1, TIMEOUT).await;
    let request = SelectionRequest::new(ImageId::new(), "x".into(), (64, 48), click(3, 4));
    let reply = services.queue.request(request, Duration::from_secs(5), pending()).await;
    assert!(matches!(reply, Err(RequestError::NoWorker)), "{reply:?}");
}

/// Takes longer than its caller waits.
struct Slow {
    answered: Arc<AtomicU32>,
}

impl Answerer for Slow {
    type To = SelectionRequest;

    const FINISHES_LATE: bool = true;

    async fn answer(&mut self, _: &SelectionRequest) -> SelectionReply {
        tokio::time::sleep(Duration::from_millis(600)).await;
        self.answered.fetch_add(1, Ordering::SeqCst);
        Err(SelectionFailure::NothingFound)
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_click_that_takes_too_long_is_finished_for_the_next_one(pool: PgPool) {
    let services = Services::start(pool, 4).await;
    let (answered, stop) = (Arc::new(AtomicU32::new(0)), CancellationToken::new());
    let slow = Slow { answered: Arc::clone(&answered) };
    tokio::spawn(requests::answer(slow, services.queue.clone(), || true, stop.clone()));
    let late = eventually(TIMEOUT, "a worker listens", || async {
        let request = SelectionRequest::new(ImageId::new(), "x".into(), (64, 48), click(3, 4));
        match services.queue.request(request, Duration::from_millis(300), pending()).await {
            Err(RequestError::NoWorker) => None,
            other => Some(other),
        }
    });
    assert!(matches!(late.await, Err(RequestError::TimedOut)));
    let finished = || async { (answered.load(Ordering::SeqCst) == 1).then_some(()) };
    eventually(Duration::from_secs(10), "the answer is finished", finished).await;
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_click_selects_the_subject_of_a_photo() {
    use retouch_inference::registry::Registry;
    use retouch_pixels::Limits;
    use retouch_pixels::decode::decode;
    use retouch_pixels::select::{Marks, Point, Scene};
    use retouch_worker::pixel_pool::PixelPool;
    use retouch_worker::select::{Known, Models, Wanted};

    let models = crate::jobs::only("u2netp");
    let registry = Arc::new(Registry::open(models.path(), crate::runtime()).unwrap());
    let models = Models::new(registry, PixelPool::new(2).unwrap());
    let photo = decode(&crate::photo("astronaut.jpg"), &Limits::default()).unwrap();
    let mut known = Known::new(Scene::new(photo));
    let mut select = async |x, y| {
        let marks = Marks { positive: vec![Point { x, y }], ..Marks::default() };
        let png = models.select(&mut known, Wanted { marks, ..Wanted::default() }).await.unwrap();
        image::load_from_memory(&png.unwrap()).unwrap().into_luma8()
    };
    let astronaut = select(200, 400).await;
    let on = |x, y| astronaut.get_pixel(x, y).0[0] == 255;
    assert!(on(215, 130) && on(200, 400), "her face and her suit");
    assert!(!on(330, 60) && !on(20, 100), "not the wall");
    let share = astronaut.pixels().filter(|pixel| pixel[0] == 255).count() as f64 / (512.0 * 512.0);
    assert!((0.45..0.65).contains(&share), "{share}");
}
