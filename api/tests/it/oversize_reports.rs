//! `/api/free/upload` accepts URLs from untrusted clients: it must never fetch them, and must log one clean line per
//! request.

use std::net::{SocketAddr, TcpListener};

use axum::http::StatusCode;
use retouch_standins::log::{CapturedLog, LogFormat};
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::app::TestApp;

/// A secret in the hostile URLs that must not be logged.
const SECRET: &str = "s3cr3t";
/// The maximum length of a log line, in bytes.
const MAX_LINE_BYTES: usize = 750;

/// A listener that must not receive connections.
struct Canary(TcpListener);

impl Canary {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    fn assert_untouched(&self) {
        assert_eq!(self.0.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}

/// Returns over two hundred hostile URLs, many of which point to `canary`.
fn hostile(canary: SocketAddr) -> Vec<String> {
    let port = canary.port();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "127.0.0.1.nip.io",
        "localtest.me",
        "127。0。0。1",
        "ada:s3cr3t@127.0.0.1",
        "example.com#@127.0.0.1",
        "example.com\\@127.0.0.1",
        "①②⑦.0.0.1",
    ];
    let schemes =
        ["http", "https", "HTTP", "ftp", "gopher", "ws", "dict", "ldap", "jar:http", "unix"];
    let mut all: Vec<String> = Vec::new();
    for host in hosts {
        for scheme in schemes {
            all.push(format!("{scheme}://{host}:{port}/x?token={SECRET}#{SECRET}"));
        }
    }
    all.extend(
        [
            "http://169.254.169.254/latest/meta-data/iam/?s3cr3t",
            "http://metadata.google.internal/computeMetadata/v1/?s3cr3t",
            "http://[fd00:ec2::254]/latest/?s3cr3t",
            "file:///etc/passwd?s3cr3t",
            "javascript:alert('s3cr3t')",
            "data:text/html,<script>s3cr3t</script>",
            "mailto:s3cr3t@example.test",
            "tel:s3cr3t",
            "blob:http://127.0.0.1/s3cr3t",
            "about:blank?s3cr3t",
            "//127.0.0.1/x?s3cr3t",
            "x?s3cr3t",
            "",
            " ",
            "http://",
            "http:///x?s3cr3t",
            "http://x\r\nSet-Cookie: a=s3cr3t\r\n\r\n<html>",
            "https://x.test/\r\n2026-01-01T00:00:00Z  INFO retouch_api: forged?s3cr3t",
            "https://x.test/\n{\"level\":\"ERROR\"}?s3cr3t",
            "https://x.test/a\u{1b}[2J\u{1b}[31ms?s3cr3t",
            "https://x.test/\u{1b}]0;title\u{7}?s3cr3t",
            "https://x.test/\u{9b}31m?s3cr3t",
            "https://x.test/\0\0\0?s3cr3t",
            "\0",
            "https://x.test/\u{85}\u{2028}\u{2029}?s3cr3t",
            "https://x.test/\u{202e}gnp.exe?s3cr3t",
            "https://x.test/\u{feff}\u{200b}?s3cr3t",
            "https://x.test/💩/ü/日本語?s3cr3t",
            "https://x.test/%0d%0a%00%1b?s3cr3t",
            "https://x.test/%250d%250a?s3cr3t",
            "https://x.test/../../../../etc/passwd?s3cr3t",
            "https://x.test/${jndi:ldap://127.0.0.1/a}?s3cr3t",
            "https://x.test/{{7*7}}%n%s%x?s3cr3t",
            "https://x.test/'; drop table users; --?s3cr3t",
            "https://x.test:99999/?s3cr3t",
            "https://x.test:-1/?s3cr3t",
            "\u{7f}\u{80}\u{9f}",
            "\t\u{b}\u{c}",
        ]
        .map(str::to_owned),
    );
    all.push(format!("https://x.test/{}?{SECRET}", "a".repeat(20_000)));
    all.push(format!("https://x.test/{}", "%41".repeat(9_000)));
    all.push("💩".repeat(4_000));
    all.push(format!("https://{}.test/?{SECRET}", "x".repeat(20_000)));
    all
}

/// Percent-encodes every byte.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |encoded, byte| encoded + &format!("%{byte:02X}"))
}

fn assert_one_clean_line(log: &str, what: &str) {
    let what: String = what.chars().take(100).collect();
    let line = log.strip_suffix('\n').unwrap_or_else(|| panic!("no line for {what:?}: {log:?}"));
    assert!(!line.chars().any(char::is_control), "{what:?}: {line:?}");
    assert!(line.is_ascii(), "{what:?}: {line:?}");
    assert!(!line.contains(SECRET), "{what:?}: {line:?}");
    assert!(line.len() <= MAX_LINE_BYTES, "{what:?}: {} bytes", line.len());
    assert!(
        line.contains("A visitor selected an image above the size limit"),
        "{what:?}: {line:?}"
    );
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn reported_urls_are_never_fetched_and_logged_as_one_clean_line(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let canary = Canary::new();
    let hostile = hostile(canary.address());
    assert!(hostile.len() >= 200, "{}", hostile.len());
    for format in [LogFormat::Text, LogFormat::Json] {
        let (log, _guard) = CapturedLog::start(format);
        for (n, url) in hostile.iter().enumerate() {
            let path = format!("/api/free/upload?x={}&y=9000&url={}", 7000 + n, encoded(url));
            let Ok(_) = path.parse::<axum::http::Uri>() else {
                // Too long for a request line; the server rejects it earlier.
                continue;
            };
            let answer = app.get(&path).send().await;
            assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text());
            assert!(answer.body.is_empty() && !answer.headers.contains_key("set-cookie"));
            assert_one_clean_line(&log.take(), url);
        }
    }
    canary.assert_untouched();
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn malformed_numbers_are_accepted_and_duplicate_parameters_rejected(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let (log, _guard) = CapturedLog::start(LogFormat::Text);
    let numbers =
        ["-1", "0", "1e9", "NaN", "99999999999999999999", "%00", "٣", "0x10", "1%0a2", ""];
    for number in numbers {
        let path = format!("/api/free/upload?x={number}&y={number}&z[]={number}&;&&=");
        assert_eq!(app.get(&path).send().await.status, StatusCode::NO_CONTENT, "{number}");
        assert_one_clean_line(&log.take(), number);
    }
    for query in ["x=1&x=2", "url=a&url=b"] {
        let answer = app.get(&format!("/api/free/upload?{query}")).send().await;
        assert_eq!(
            (answer.status, answer.json()["status"].as_u64()),
            (StatusCode::BAD_REQUEST, Some(400))
        );
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(log.take(), "");
    }
}

#[sqlx::test(migrator = "retouch_core::db::MIGRATOR")]
async fn malformed_requests_cannot_forge_log_lines(pool: PgPool) {
    let app = TestApp::start(pool).await;
    let canary = Canary::new();
    let server = app.listen().await;
    let (log, _guard) = CapturedLog::start(LogFormat::Text);
    let long = "a".repeat(100_000);
    let raw: [&[u8]; 8] = [
        b"\0",
        b"\x1b[31m",
        b"\xff\xfe",
        b"a b",
        b"a\r\nX-Evil: s3cr3t",
        b"a\nX-Evil: s3cr3t",
        b"a HTTP/1.1\r\nHost: x\r\n\r\nGET /api/free/upload?url=smuggled",
        long.as_bytes(),
    ];
    for url in raw {
        let mut request = b"GET /api/free/upload?x=1&y=2&url=".to_vec();
        request.extend_from_slice(url);
        request.extend_from_slice(b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let mut connection = TcpStream::connect(server).await.unwrap();
        let (mut reading, mut writing) = connection.split();
        let mut answer = Vec::new();
        // The server may close the connection before it has read everything.
        let (_, _) = tokio::join!(writing.write_all(&request), reading.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).unwrap_or_default().to_owned();
        assert!(status.starts_with('2') || status.starts_with('4'), "{answer:?}");
        for line in log.take().split_inclusive('\n') {
            assert_one_clean_line(line, &String::from_utf8_lossy(url));
        }
    }
    canary.assert_untouched();
}
