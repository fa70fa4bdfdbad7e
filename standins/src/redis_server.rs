//! Private Redis or Valkey servers for tests, which can flush, freeze and restart them.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use retouch_core::config::RedisConfig;

/// Returns the server programs to test: the paths in `RETOUCH_TEST_REDIS_SERVERS`, separated by colons, or by default
/// `redis-server` from the `PATH`.
pub fn programs() -> Vec<String> {
    setting("RETOUCH_TEST_REDIS_SERVERS").map_or_else(
        || vec!["redis-server".into()],
        |paths| paths.split(':').map(Into::into).collect(),
    )
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests that no program reads")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A server process, killed on drop.
pub struct RedisServer {
    process: Child,
    program: String,
    port: u16,
}

impl RedisServer {
    /// Starts the first of [`programs`].
    pub fn start() -> Self {
        Self::start_program(programs().first().expect("at least one server program"))
    }

    /// Starts `program` on a free port and waits until it accepts connections.
    pub fn start_program(program: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let process = Self::spawn(program, port);
        let server = Self { process, program: program.into(), port };
        server.wait_until_it_answers();
        server
    }

    fn spawn(program: &str, port: u16) -> Child {
        Command::new(program)
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("starting {program}: {error}"))
    }

    fn wait_until_it_answers(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let client = redis::Client::open(self.url()).expect("a valid address");
        while client.get_connection().is_err() {
            assert!(Instant::now() < deadline, "{} did not start", self.program);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn config(&self) -> RedisConfig {
        let redis_url = self.url().parse().unwrap_or_else(|never| match never {});
        RedisConfig { redis_url, redis_prefix: "test".into() }
    }

    pub fn flush_all(&self) {
        redis::cmd("FLUSHALL").exec(&mut self.connect()).expect("flushed");
    }

    /// Returns the length of the list `key`, which is 0 if there is none.
    pub fn list_length(&self, key: &str) -> usize {
        redis::cmd("LLEN").arg(key).query(&mut self.connect()).expect("the length")
    }

    fn connect(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("a valid address");
        client.get_connection().expect("a connection")
    }

    /// Freezes the process: connections stay open, and nothing answers.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Freezes the process for `time`, like a server that swaps or whose host is paused.
    pub fn freeze_for(&self, time: Duration) {
        self.freeze();
        std::thread::sleep(time);
        self.signal("CONT");
    }

    /// Kills the server and starts it again, empty, on the same port.
    pub fn restart(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.process = Self::spawn(&self.program, self.port);
        self.wait_until_it_answers();
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.process.id().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()), "sending SIG{name}");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
