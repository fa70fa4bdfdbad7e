//! Hostile load: pictures, forms, uploads and connections that are made to exhaust the API.
//!
//! The tests of memory run the real program as in a container of 1 GiB and print its peak.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use image::{DynamicImage, ImageBuffer, ImageFormat};
use img_parts::png::{Png, PngChunk};
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::app::{AUDIENCE, TestApp, png};
use crate::processes::{Process, Services};

/// What a container of 1 GiB leaves for pictures.
const DECODE_MEMORY_MIB: &str = "512";
/// The memory of such a container, less what the kernel counts for it beside the process.
const CONTAINER_MIB: u64 = 1000;

const MULTIPART: &str = "multipart/form-data; boundary=frontier";

/// Returns a multipart body with a file and text fields.
fn multipart(name: &str, file: &[u8], fields: &[(&str, &str)]) -> Vec<u8> {
    let part = "--frontier\r\ncontent-disposition: form-data; name=";
    let mut body = Vec::with_capacity(file.len() + 1000);
    for (name, value) in fields {
        body.extend_from_slice(format!("{part}\"{name}\"\r\n\r\n{value}\r\n").as_bytes());
    }
    body.extend_from_slice(format!("{part}\"{name}\"; filename=\"a\"\r\n\r\n").as_bytes());
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--frontier--\r\n");
    body
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Returns a file of some 280 kB with 36 megapixels of 16 bits per sample; each has another `content`.
fn deep_picture(content: u16) -> Vec<u8> {
    let pixel = image::Rgba([65535_u16, content, 7, 40_000]);
    encoded(
        &DynamicImage::ImageRgba16(ImageBuffer::from_pixel(6000, 6000, pixel)),
        ImageFormat::Png,
    )
}

/// Returns a JPEG of 36 megapixels and almost 25 MiB.
fn large_photo(content: u32) -> Vec<u8> {
    let picture = image::RgbImage::from_fn(6000, 6000, |x, y| {
        let mut value = (x / 2 * 7919 + y / 2 * 104_729 + content) ^ 0x2545_f491;
        value ^= value << 13;
        value ^= value >> 17;
        let [r, g, b, _] = (value ^ value << 5).to_le_bytes();
        image::Rgb([r / 3, g / 3, b / 3])
    });
    let mut bytes = Vec::new();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 80);
    picture.write_with_encoder(encoder).unwrap();
    assert!(bytes.len() < 25 << 20, "{}", bytes.len());
    bytes
}

/// Returns a PNG of kilobytes whose color profile claims 300 MB.
fn picture_with_profile() -> Vec<u8> {
    let mut profile = vec![0; 300 << 20];
    profile[..4].copy_from_slice(&(300_u32 << 20).to_be_bytes());
    profile[16..20].copy_from_slice(b"RGB ");
    profile[36..40].copy_from_slice(b"acsp");
    let mut file = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut file);
    image::ImageEncoder::set_icc_profile(&mut encoder, profile).unwrap();
    image::RgbImage::new(60, 40).write_with_encoder(encoder).unwrap();
    file
}

/// The real API as in a container of 1 GiB, which trusts what clients say about their addresses.
struct Api {
    services: Services,
    address: String,
    process: Process,
}

impl Api {
    async fn start(pool: PgPool) -> Self {
        let services = Services::start(pool).await;
        let (program, address) = services.api();
        let process = program
            .set("RETOUCH_DECODE_MEMORY_MIB", DECODE_MEMORY_MIB)
            .set("RETOUCH_DECODE_THREADS", "2")
            .set("RETOUCH_TRUSTED_PROXIES", "127.0.0.1")
            .start();
        services.wait_for(&format!("{address}/readyz"), &process).await;
        Self { services, address, process }
    }

    /// Sends a picture as a visitor at an address of their own, and returns the status.
    async fn send_free(&self, visitor: usize, picture: Vec<u8>) -> StatusCode {
        let request = self.services.http.post(format!("{}/api/free/remove-bg-fr", self.address));
        let request = request
            .header("x-forwarded-for", format!("9.9.{visitor}.1"))
            .header("prefer", "respond-async")
            .header("content-type", MULTIPART)
            .body(multipart("file", &picture, &[]));
        request.send().await.expect("the API lives").status()
    }

    async fn key(&self) -> String {
        let token = self.services.issuer.token("ada", AUDIENCE);
        let request = self.services.http.post(format!("{}/api/keys", self.address));
        let request = request.bearer_auth(token).json(&serde_json::json!({"name": "test"}));
        let created: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
        created["key"].as_str().unwrap().to_owned()
    }

    /// Runs `load`, prints the memory before and at the peak and the slowest answer of `/healthz` meanwhile, and
    /// returns the last two, in MiB and as a time.
    async fn measure<T>(&self, name: &str, load: impl Future<Output = T>) -> (T, u64, Duration) {
        let before = self.process.memory_mib("VmHWM");
        let done = AtomicBool::new(false);
        let probe = async {
            let mut slowest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let started = Instant::now();
                let health = self.services.http.get(format!("{}/healthz", self.address)).send();
                assert_eq!(health.await.expect("the API lives").status(), 200);
                slowest = slowest.max(started.elapsed());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            slowest
        };
        let load = async {
            let made = load.await;
            done.store(true, Ordering::Relaxed);
            made
        };
        let (made, slowest) = tokio::join!(load, probe);
        let peak = self.process.memory_mib("VmHWM");
        println!(
            "{name}: {before} MiB before, {peak} MiB at the peak, /healthz within {slowest:?}"
        );
        (made, peak, slowest)
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn large_pictures_of_strangers_wait_for_their_memory(pool: PgPool) {
    let api = Api::start(pool).await;
    let pictures: Vec<_> = (0..8).map(deep_picture).collect();
    println!("eight pictures of {} kB", pictures[0].len() / 1000);
    let sent = pictures.into_iter().enumerate().map(|(n, picture)| api.send_free(n, picture));
    let (answers, peak, _) =
        api.measure("36 megapixels of 16 bits", futures::future::join_all(sent)).await;
    assert!(answers.iter().all(|status| [202, 503].contains(&status.as_u16())), "{answers:?}");
    assert!(answers.contains(&StatusCode::ACCEPTED), "{answers:?}");
    assert!(peak < 700, "{peak} MiB");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_profile_that_inflates_takes_no_memory(pool: PgPool) {
    let api = Api::start(pool).await;
    let picture = picture_with_profile();
    let sent = (0..4).map(|n| api.send_free(n, picture.clone()));
    let (answers, peak, _) =
        api.measure("profiles of 300 MB", futures::future::join_all(sent)).await;
    assert!(answers.contains(&StatusCode::ACCEPTED), "{answers:?}");
    assert!(peak < 150, "{peak} MiB");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn forms_of_many_fields_take_neither_memory_nor_the_event_loop(pool: PgPool) {
    let api = Api::start(pool).await;
    let key = api.key().await;
    let repeated = |part: &str, around: (&str, &str)| {
        let mut body = around.0.to_owned();
        body.push_str(&part.repeat((32 << 20) / part.len()));
        body + around.1
    };
    let field = "--frontier\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
    for (kind, body) in [
        ("application/x-www-form-urlencoded", repeated("a=1&", ("", ""))),
        ("application/json", repeated("0,", ("{\"a\":[", "0]}"))),
        ("application/json", repeated("\"a\":1,", ("{", "\"b\":2}"))),
        (MULTIPART, repeated(field, ("", "--frontier--\r\n"))),
    ] {
        let send = |_| async {
            let request = api.services.http.post(format!("{}/v1.0/removebg", api.address));
            let request = request.header("x-api-key", &key).header("content-type", kind);
            request.body(body.clone()).send().await.expect("the API lives").status().as_u16()
        };
        // A busy machine answers late now and then; work on the event loop would delay an answer of each try.
        let mut shortest_wait = Duration::MAX;
        for _ in 0..3 {
            let load = futures::future::join_all((0..3).map(send));
            let (answers, peak, slowest) = api.measure(&format!("three forms: {kind}"), load).await;
            assert!(answers.iter().all(|status| [400, 503].contains(status)), "{answers:?}");
            assert!(peak < 400, "{kind}: {peak} MiB");
            shortest_wait = shortest_wait.min(slowest);
            if shortest_wait < Duration::from_secs(1) {
                break;
            }
        }
        assert!(shortest_wait < Duration::from_secs(1), "{kind}: {shortest_wait:?}");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn two_large_photos_at_once_are_cut_out_for_a_program(pool: PgPool) {
    let api = Api::start(pool).await;
    let key = api.key().await;
    let _worker = api.services.worker().start();
    let photos = [large_photo(1), large_photo(2)];
    println!("two photos of {} and {} kB", photos[0].len() / 1000, photos[1].len() / 1000);
    let send = async |photo: Vec<u8>| {
        let fields = [("size", "full"), ("bg_color", "red"), ("format", "png")];
        let request = api.services.http.post(format!("{}/v1.0/removebg", api.address));
        let request = request.header("x-api-key", &key).header("content-type", MULTIPART);
        let request = request.body(multipart("image_file", &photo, &fields));
        let answer = request.timeout(Duration::from_mins(3)).send().await.expect("the API lives");
        let (status, charged) =
            (answer.status(), answer.headers().contains_key("x-credits-charged"));
        let bytes = answer.bytes().await.expect("the whole cutout");
        (status, charged, bytes.len())
    };
    let load = futures::future::join_all(photos.into_iter().map(send));
    let (answers, peak, _) = api.measure("two photos of 36 megapixels", load).await;
    println!("{answers:?}");
    assert!(answers.iter().all(|(status, charged, _)| *status == StatusCode::OK && *charged));
    assert!(peak < CONTAINER_MIB, "{peak} MiB");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_picture_beyond_all_memory_is_rejected(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--decode-memory-mib=9"]).await;
    let ada = app.token("ada");
    let upload = |picture: Vec<u8>| app.post("/api/images/upload").by(&ada).file(&picture).send();
    let detail = "This image needs more memory than the server allows for one image. Please send it with fewer pixels.";
    upload(png(2000, 1000)).await.is_problem(422, detail);
    assert_eq!(upload(png(64, 48)).await.status, StatusCode::CREATED);
}

/// Returns an upload of `bytes` bytes of which `sent` follow the head at once.
async fn begin_upload(address: SocketAddr, from: &str, bytes: usize, sent: usize) -> TcpStream {
    let mut caller = TcpStream::connect(address).await.unwrap();
    let start =
        "--frontier\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    let head = format!(
        "POST /api/free/remove-bg-fr HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {from}\r\nContent-Length: {}\r\n\
         Content-Type: multipart/form-data; boundary=frontier\r\n\r\n{start}",
        bytes + start.len()
    );
    caller.write_all(head.as_bytes()).await.unwrap();
    caller.write_all(&vec![0; sent]).await.unwrap();
    caller
}

async fn answer_of(caller: &mut TcpStream) -> String {
    let mut answer = vec![0; 2000];
    let length = tokio::time::timeout(Duration::from_secs(20), caller.read(&mut answer)).await;
    answer.truncate(length.expect("in time").unwrap_or(0));
    String::from_utf8_lossy(&answer).into_owned()
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_few_addresses_cannot_block_the_uploads_of_all(pool: PgPool) {
    let settings = ["--upload-memory-mib=8", "--trusted-proxies=127.0.0.1"];
    let app = TestApp::start_with(pool, &settings).await;
    let address = app.listen().await;
    // Two addresses fill what they get, and stay. Their further uploads are refused.
    let mut held = Vec::new();
    for from in ["6.6.6.1", "6.6.6.2"] {
        for _ in 0..8 {
            held.push(begin_upload(address, from, 2 << 20, 1 << 20).await);
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for n in 0..12 {
        let request = app.post("/api/free/remove-bg-fr");
        let request = request.header("x-forwarded-for", &format!("8.8.{n}.8"));
        let answer = request.file(&vec![0; 700 << 10]).send().await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{}", answer.text());
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_form_without_a_field_header_is_refused_early(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let mut caller = TcpStream::connect(app.listen().await).await.unwrap();
    let head = "POST /api/verify HTTP/1.1\r\nHost: test\r\nContent-Length: 20000000\r\n\
                Content-Type: multipart/form-data; boundary=-------x\r\n\r\n";
    caller.write_all(head.as_bytes()).await.unwrap();
    // The rest never comes.
    caller.write_all(&vec![b'-'; 1 << 20]).await.unwrap();
    let answer = answer_of(&mut caller).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_large_field_that_nobody_asked_for_is_skipped(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let mut caller = TcpStream::connect(app.listen().await).await.unwrap();
    let extra = "x".repeat(1 << 20);
    let body = multipart("file", &png(60, 40), &[("comment", &extra)]);
    let head = format!(
        "POST /api/free/remove-bg-fr HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\
         Prefer: respond-async\r\nContent-Type: {MULTIPART}\r\n\r\n",
        body.len()
    );
    caller.write_all(head.as_bytes()).await.unwrap();
    for part in body.chunks(300 << 10) {
        caller.write_all(part).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let answer = answer_of(&mut caller).await;
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_upload_that_trickles_is_aborted(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--upload-pause-secs=1"]).await;
    let mut caller = begin_upload(app.listen().await, "6.6.6.1", 4 << 20, 2 << 20).await;
    let started = Instant::now();
    let (mut reader, mut writer) = caller.split();
    let trickle = async {
        while started.elapsed() < Duration::from_secs(20) {
            if writer.write_all(b"0").await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let mut answer = vec![0; 500];
    tokio::select! {
        () = trickle => panic!("the upload goes on"),
        read = reader.read(&mut answer) => { read.unwrap(); }
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// Connects from an address of this machine.
async fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Returns whether the API answers on a connection.
async fn is_served(caller: &mut TcpStream) -> bool {
    let sent = caller.write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n").await;
    sent.is_ok() && answer_of(caller).await.starts_with("HTTP/1.1 200 ")
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn an_address_cannot_take_all_connections(pool: PgPool) {
    let settings = ["--max-connections=40", "--address-connections=15"];
    for (trusted, most) in [(&[][..], 15), (&["--trusted-proxies=127.0.0.1"][..], 40)] {
        let app = TestApp::start_with(pool.clone(), &[&settings[..], trusted].concat()).await;
        let address = app.listen().await;
        let mut held = Vec::new();
        for _ in 0..most {
            let mut caller = connect("127.0.0.1", address).await;
            assert!(is_served(&mut caller).await, "{} of {most}", held.len());
            held.push(caller);
        }
        assert!(!is_served(&mut connect("127.0.0.1", address).await).await, "beyond {most}");
        let mut newcomer = connect("127.0.0.2", address).await;
        assert_eq!(is_served(&mut newcomer).await, most == 15);
        // Those that end make room.
        held.truncate(5);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(is_served(&mut connect("127.0.0.1", address).await).await);
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_client_behind_a_proxy_cannot_take_all_connections(pool: PgPool) {
    let settings = [
        "--max-connections=40",
        "--address-connections=15",
        "--trusted-proxies=127.0.0.1",
        "--visitor-uploads-per-hour=1000",
    ];
    let app = TestApp::start_with(pool, &settings).await;
    let from = |client: &'static str, name: &str| {
        let request = app.get("/api/events").header("x-forwarded-for", client);
        request.by(&app.token(name)).open()
    };
    let mut held = Vec::new();
    for n in 0..15 {
        let response = from("9.9.9.9", &format!("mallory {}", n % 3)).await;
        assert_eq!(response.status(), StatusCode::OK, "{n}");
        held.push(response);
    }
    let refused = from("9.9.9.9", "ada").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(from("8.8.8.8", "ada").await.status(), StatusCode::OK, "others are served");
    // A response counts until its last byte is read or its reader is gone.
    held.truncate(14);
    assert_eq!(from("9.9.9.9", "ada").await.status(), StatusCode::OK);
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_new_connection_must_send_its_head_soon_and_may_idle_later(pool: PgPool) {
    let app = TestApp::start_with(pool, &["--head-timeout-secs=1"]).await;
    let address = app.listen().await;
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: te").await.unwrap();
    let mut idle = TcpStream::connect(address).await.unwrap();
    assert!(is_served(&mut idle).await);
    let started = Instant::now();
    assert_eq!(answer_of(&mut half).await, "", "it is closed");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_served(&mut idle).await, "it was used before");
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn a_file_of_countless_pieces_takes_no_more_memory_than_its_size(pool: PgPool) {
    let api = Api::start(pool).await;
    // Six million empty comments and two million empty chunks.
    let jpeg = encoded(&DynamicImage::ImageRgb8(image::RgbImage::new(60, 40)), ImageFormat::Jpeg);
    let comments = [0xff, 0xfe, 0, 2].repeat(6 << 20);
    let jpeg = [&jpeg[..2], &comments, &jpeg[2..]].concat();
    let mut chunks = Png::from_bytes(png(60, 40).into()).unwrap();
    let empty = PngChunk::new(*b"prVt", Vec::new().into()).encoder().bytes().repeat(2 << 20);
    let end = chunks.chunks_mut().pop().unwrap();
    let mut png = chunks.encoder().bytes().to_vec();
    png.extend_from_slice(&empty);
    png.extend_from_slice(&end.encoder().bytes());
    let sent = [api.send_free(1, jpeg), api.send_free(2, png)];
    let (answers, peak, _) = api.measure("countless pieces", futures::future::join_all(sent)).await;
    // Walking over so many chunks would take long.
    assert_eq!(answers, [StatusCode::UNPROCESSABLE_ENTITY; 2]);
    assert!(peak < 300, "{peak} MiB");
}
