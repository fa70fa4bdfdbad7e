//! Doorbells and events on every supported server: no Redis outage stops a worker.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use retouch_catalog::{JobClass, Tier, ToolName};
use retouch_core::config::RedisConfig;
use retouch_core::queue::{
    Handler, JobEvent, JobProgress, ProgressStage, Queue, Rate, RequestError, Verdict,
};
use retouch_core::selection::{Clicks, SelectionFailure, SelectionRequest};
use retouch_core::{ImageId, JobId};
use retouch_standins::redis_server::{RedisServer, programs};
use retouch_standins::testing::eventually;
use tokio::io::AsyncReadExt;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::relay::relay;

const PAID: JobClass = JobClass { tier: Tier::Paid, tool: ToolName::RemoveBackground };
const FREE: JobClass = JobClass { tier: Tier::Free, tool: ToolName::RemoveBackground };
const PATIENCE: Duration = Duration::from_secs(20);

struct Listening {
    heard: mpsc::UnboundedReceiver<(JobId, Instant)>,
    most_at_once: Arc<AtomicUsize>,
    stop: CancellationToken,
    worker: tokio::task::JoinHandle<anyhow::Result<()>>,
}

fn listen(queue: &Queue, slots: usize, each: Duration) -> Listening {
    let (sender, heard) = mpsc::unbounded_channel();
    let (now, most_at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let most = most_at_once.clone();
    let handler: Handler = Arc::new(move |job| {
        let (sender, now, most) = (sender.clone(), now.clone(), most.clone());
        Box::pin(async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _ = sender.send((job, Instant::now()));
            tokio::time::sleep(each).await;
            now.fetch_sub(1, Ordering::SeqCst);
        })
    });
    let (queue, stop) = (queue.clone(), CancellationToken::new());
    let stopping = stop.clone();
    let worker = tokio::spawn(async move {
        queue.consume(vec![FREE, PAID], slots, handler, stopping, Duration::from_secs(5)).await
    });
    Listening { heard, most_at_once, stop, worker }
}

impl Listening {
    async fn hear(&mut self) -> JobId {
        let heard = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        heard.expect("heard the doorbell in time").expect("the worker is running").0
    }

    async fn end(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.worker).await;
        ended.expect("stops in time").expect("no panic").expect("no error");
    }
}

async fn ring(queue: &Queue, class: JobClass) -> JobId {
    let job = JobId::new();
    eventually(PATIENCE, "rung", || async { queue.ring(class, job).await.ok() }).await;
    job
}

/// Runs `check` against each server program in turn.
async fn on_each_server<F: Future<Output = ()>>(check: impl Fn(RedisServer, Queue) -> F) {
    for program in programs() {
        eprintln!("on {program}");
        let server = RedisServer::start_program(&program);
        let queue = Queue::new(&server.config()).unwrap();
        check(server, queue).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_most_urgent_class_comes_first_and_no_more_jobs_run_than_there_are_slots() {
    on_each_server(|server, queue| async move {
        let free = [ring(&queue, FREE).await, ring(&queue, FREE).await];
        let paid = [ring(&queue, PAID).await, ring(&queue, PAID).await, ring(&queue, PAID).await];
        let mut listening = listen(&queue, 2, Duration::from_millis(100));
        let mut heard = Vec::new();
        for _ in 0..5 {
            heard.push(listening.hear().await);
        }
        assert_eq!(heard, [paid.as_slice(), free.as_slice()].concat());
        assert_eq!(listening.most_at_once.load(Ordering::SeqCst), 2);
        assert_eq!(queue.unread(PAID).await.unwrap(), 0);
        listening.end().await;
        drop(server);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_the_doorbells_and_each_rings_once() {
    on_each_server(|server, queue| async move {
        let mut one = listen(&queue, 4, Duration::from_millis(1));
        let mut other = listen(&queue, 4, Duration::from_millis(1));
        let mut rung = Vec::new();
        for _ in 0..200 {
            rung.push(ring(&queue, PAID).await);
        }
        let mut heard = Vec::new();
        while heard.len() < 200 {
            tokio::select! {
                job = one.hear() => heard.push(job),
                job = other.hear() => heard.push(job),
            }
        }
        heard.sort_by_key(|job| job.uuid());
        assert_eq!(heard, rung);
        one.end().await;
        other.end().await;
        drop(server);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_survives_a_flush_an_outage_and_a_restart_of_redis() {
    on_each_server(|server, queue| async move {
        let mut listening = listen(&queue, 2, Duration::ZERO);
        let job = ring(&queue, PAID).await;
        assert_eq!(listening.hear().await, job);

        server.flush_all();
        let job = ring(&queue, PAID).await;
        assert_eq!(listening.hear().await, job, "after a flush");

        let server = tokio::task::spawn_blocking(move || {
            server.freeze_for(Duration::from_secs(2));
            server
        });
        let mut server = server.await.unwrap();
        let job = ring(&queue, PAID).await;
        // A ring whose answer got lost was repeated, so this doorbell may come twice.
        while listening.hear().await != job {}

        server.restart();
        let job = ring(&queue, PAID).await;
        while listening.hear().await != job {}
        assert!(!listening.worker.is_finished());
        listening.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_finishes_its_jobs_and_starts_no_new_ones() {
    on_each_server(|server, queue| async move {
        let mut listening = listen(&queue, 1, Duration::from_millis(400));
        ring(&queue, PAID).await;
        ring(&queue, PAID).await;
        listening.hear().await;
        listening.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, &mut listening.worker).await;
        ended.expect("stops in time").expect("no panic").expect("no error");
        assert!(listening.heard.try_recv().is_err(), "nothing new was started");
        assert_eq!(queue.unread(PAID).await.unwrap(), 1, "the second still waits");
        drop(server);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_9000_doorbells_is_read_completely() {
    on_each_server(|server, queue| async move {
        queue.ring_for_any(PAID, 9_000).await.unwrap();
        assert_eq!(queue.unread(PAID).await.unwrap(), 9_000);
        let mut listening = listen(&queue, 16, Duration::ZERO);
        for _ in 0..9_000 {
            listening.hear().await;
        }
        assert_eq!(queue.unread(PAID).await.unwrap(), 0);
        listening.end().await;
        drop(server);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_reads_a_doorbell_within_milliseconds() {
    let server = RedisServer::start();
    let queue = Queue::new(&server.config()).unwrap();
    let mut listening = listen(&queue, 4, Duration::ZERO);
    ring(&queue, PAID).await;
    listening.hear().await;
    let mut delays = Vec::new();
    for _ in 0..200 {
        let rung = Instant::now();
        queue.ring(PAID, JobId::new()).await.unwrap();
        let (_, heard) = listening.heard.recv().await.unwrap();
        delays.push(heard - rung);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    delays.sort();
    eprintln!("ring to start: p50 {:?}, p99 {:?}", delays[100], delays[197]);
    // The goal is p99 < 10 ms on an idle machine. A test machine is not idle, so this checks the median.
    assert!(delays[100] < Duration::from_millis(10), "median {:?}", delays[100]);
    listening.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_again_after_a_restart() {
    on_each_server(|mut server, queue| async move {
        let (sender, mut events) = broadcast::channel(16);
        let listener = queue.clone();
        let listening = tokio::spawn(async move { listener.forward_events(sender).await });
        for _ in 0..2 {
            let at = JobProgress::at(ProgressStage::Infer, 0.5);
            let progress = JobEvent::progress(JobId::new(), at);
            eventually(PATIENCE, "the event arrived", || {
                let (queue, mut events) = (queue.clone(), events.resubscribe());
                async move {
                    queue.publish(progress).await.ok()?;
                    let arrived =
                        tokio::time::timeout(Duration::from_millis(200), events.recv()).await;
                    arrived.ok()?.ok().filter(|arrived| *arrived == progress)
                }
            })
            .await;
            server.restart();
        }
        while events.try_recv().is_ok() {}
        listening.abort();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_again_after_the_connection_fell_silent() {
    let server = RedisServer::start();
    let (port, silence) = relay(server.url().replace("redis://", "")).await;
    let redis_url = format!("redis://127.0.0.1:{port}").parse().unwrap();
    let relayed = Queue::new(&RedisConfig { redis_url, ..server.config() }).unwrap();
    let publisher = Queue::new(&server.config()).unwrap();
    let (sender, mut events) = broadcast::channel(1024);
    let listening = tokio::spawn(async move { relayed.forward_events(sender).await });
    for _ in 0..2 {
        let event = JobEvent::changed(JobId::new());
        eventually(PATIENCE, "the event arrived", || {
            let (publisher, mut events) = (publisher.clone(), events.resubscribe());
            async move {
                publisher.publish(event).await.ok()?;
                let arrived = tokio::time::timeout(Duration::from_millis(200), events.recv()).await;
                arrived.ok()?.ok().filter(|arrived| *arrived == event)
            }
        })
        .await;
        silence.send(()).unwrap();
    }
    while events.try_recv().is_ok() {}
    listening.abort();
}

#[tokio::test]
async fn rediss_urls_begin_with_a_tls_handshake() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("rediss://:secret@{}", listener.local_addr().unwrap());
    let config = RedisConfig { redis_url: url.parse().unwrap(), redis_prefix: "tls".into() };
    let queue = Queue::new(&config).unwrap();
    let greeting = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        // The type of the record, and the version.
        let mut record = [0; 2];
        connection.read_exact(&mut record).await.unwrap();
        record
    };
    let (ping, record) = tokio::join!(queue.ping(), greeting);
    assert!(ping.is_err());
    assert_eq!(record, [0x16, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doorbell_read_by_a_killed_worker_does_not_count() {
    on_each_server(|server, queue| async move {
        // The stream and its group exist once a worker has read it.
        let mut listening = listen(&queue, 1, Duration::ZERO);
        ring(&queue, PAID).await;
        listening.hear().await;
        listening.end().await;
        ring(&queue, PAID).await;
        assert_eq!(queue.unread(PAID).await.unwrap(), 1);
        // A worker killed between reading the doorbell and acknowledging it.
        let client = redis::Client::open(server.url()).unwrap();
        let mut dying = client.get_multiplexed_async_connection().await.unwrap();
        let streams: Vec<String> =
            redis::cmd("KEYS").arg("*:jobs:*:paid").query_async(&mut dying).await.unwrap();
        let read: redis::Value = redis::cmd("XREADGROUP")
            .arg(&["GROUP", "workers", "dying", "COUNT", "1", "STREAMS", &streams[0], ">"])
            .query_async(&mut dying)
            .await
            .unwrap();
        assert!(!matches!(read, redis::Value::Nil));
        assert_eq!(queue.unread(PAID).await.unwrap(), 0, "the sweeper must ring again");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_share_a_rate_limit_that_is_replenished_and_expires() {
    on_each_server(|server, queue| async move {
        let other = Queue::new(&server.config()).unwrap();
        let rate = Rate { calls: 3, period: Duration::from_secs(3) };
        let count = async |queue: &Queue, name: &str| queue.count(name, rate, 1).await.unwrap();
        for (queue, remaining) in [(&queue, 2), (&other, 1), (&queue, 0)] {
            assert_eq!(count(queue, "ada").await, Verdict::Within { remaining });
        }
        let Verdict::Beyond { retry_after } = count(&other, "ada").await else {
            panic!("a fourth call");
        };
        assert!(retry_after > Duration::from_millis(500), "{retry_after:?}");
        assert!(retry_after <= Duration::from_secs(1), "{retry_after:?}");
        assert_eq!(count(&queue, "bob").await, Verdict::Within { remaining: 2 });
        // A call that is taken back makes room at once.
        queue.count("ada", rate, -1).await.unwrap();
        assert_eq!(count(&other, "ada").await, Verdict::Within { remaining: 0 });
        tokio::time::sleep(retry_after + Duration::from_millis(50)).await;
        assert_eq!(count(&queue, "ada").await, Verdict::Within { remaining: 0 });
        // Nothing is left behind once the allowance is full again.
        let client = redis::Client::open(server.url()).unwrap();
        let conn = client.get_multiplexed_async_connection().await.unwrap();
        let gone = async || {
            let keys: Vec<String> =
                redis::cmd("KEYS").arg("*:rate:*").query_async(&mut conn.clone()).await.unwrap();
            keys.is_empty().then_some(())
        };
        eventually(PATIENCE, "the counts expire", gone).await;
        queue.count("ada", rate, -1).await.unwrap();
        assert_eq!(count(&queue, "ada").await, Verdict::Within { remaining: 2 });
        drop(server);
    })
    .await;
}

fn a_selection() -> SelectionRequest {
    let clicks = Clicks { subject: true, ..Clicks::default() };
    SelectionRequest::new(ImageId::new(), "images/x/original".into(), (64, 48), clicks)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selection_gets_its_own_reply() {
    on_each_server(|server, queue| async move {
        let nobody = queue.request(a_selection(), PATIENCE, pending()).await;
        assert!(matches!(nobody, Err(RequestError::NoWorker)), "{nobody:?}");
        queue.announce::<SelectionRequest>().await.unwrap();
        let worker = queue.clone();
        let answering = tokio::spawn(async move {
            let mut requests = worker.requests::<SelectionRequest>();
            let mut answered = 0;
            while answered < 2 {
                let Some(pending) = requests.next().await.unwrap() else { continue };
                let request = pending.request;
                let reply = match request.width {
                    64 => Ok(bytes::Bytes::from(request.image.to_string())),
                    _ => Err(SelectionFailure::NothingFound),
                };
                worker.reply::<SelectionRequest>(request.id, reply).await.unwrap();
                answered += 1;
            }
        });
        let (one, other) = (a_selection(), SelectionRequest { width: 65, ..a_selection() });
        let image = one.image.to_string();
        let (one, other) = tokio::join!(
            queue.request(one, PATIENCE, pending()),
            queue.request(other, PATIENCE, pending())
        );
        assert_eq!(one.unwrap().unwrap(), image);
        assert_eq!(other.unwrap(), Err(SelectionFailure::NothingFound));
        answering.await.unwrap();
        drop(server);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selection_whose_caller_has_gone_is_dropped() {
    on_each_server(|server, queue| async move {
        queue.announce::<SelectionRequest>().await.unwrap();
        let late = queue.request(a_selection(), Duration::from_millis(200), pending()).await;
        assert!(matches!(late, Err(RequestError::TimedOut)), "{late:?}");
        let taken_back = tokio::time::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        let gone = queue.request(a_selection(), PATIENCE, taken_back).await;
        assert!(matches!(gone, Err(RequestError::TimedOut)), "{gone:?}");
        assert!(begun.elapsed() < PATIENCE / 2);
        // This one is dropped without that, so it stays in the list.
        let hangs_up = queue.request(a_selection(), Duration::from_millis(400), pending());
        let gone = tokio::time::timeout(Duration::from_millis(200), hangs_up).await;
        assert!(gone.is_err());
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut requests = queue.requests::<SelectionRequest>();
        for _ in 0..3 {
            let taken = requests.next().await.unwrap();
            assert!(taken.is_none(), "{taken:?}");
        }
        drop(server);
    })
    .await;
}
