//! Timestamps from a stand-in for an authority: OpenSSL with the protocol of RFC 3161.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use retouch_credentials::{
    Coverage, Credentials, CredentialsConfig, Format, Leaf, Report, Signer, State,
    TimestampAuthority, TimestampError, Verifier,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{fixed, leaf, now};

struct OpenSsl(TempDir);

impl OpenSsl {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("serial"), "01\n").unwrap();
        let settings = "[tsa]\ndefault_tsa=default\n[default]\nserial=serial\nsigner_cert=tsa.pem\n\
                        signer_key=tsa-key.pem\ncerts=root.pem\nsigner_digest=sha256\n\
                        default_policy=1.2.3.4.1\ndigests=sha256,sha384,sha512\n";
        std::fs::write(folder.path().join("settings"), settings).unwrap();
        let extensions = "extendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\n\
                          basicConstraints=critical,CA:FALSE\nauthorityKeyIdentifier=keyid\n";
        std::fs::write(folder.path().join("extensions"), extensions).unwrap();
        let words = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            run(folder.path(), &words);
        };
        words(
            "req -x509 -newkey rsa:2048 -nodes -keyout root-key.pem -out root.pem \
             -subj /O=Clocks/CN=Root -days 30 -addext keyUsage=critical,keyCertSign",
        );
        words(
            "req -new -newkey rsa:2048 -nodes -keyout tsa-key.pem -out request.pem -subj /O=Clocks/CN=TSA",
        );
        words(
            "x509 -req -in request.pem -CA root.pem -CAkey root-key.pem -CAcreateserial -days 7 \
             -extfile extensions -out tsa.pem",
        );
        Self(folder)
    }

    /// Returns the certificate of its issuer.
    fn root(&self) -> String {
        std::fs::read_to_string(self.0.path().join("root.pem")).unwrap()
    }

    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let folder = self.0.path();
        std::fs::write(folder.join("request"), request).unwrap();
        run(
            folder,
            &["ts", "-reply", "-config", "settings", "-queryfile", "request", "-out", "answer"],
        );
        std::fs::read(folder.join("answer")).unwrap()
    }
}

fn run(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output();
    let output = output.expect("openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An authority that answers with the result of a function.
struct StandIn<F>(F, Arc<AtomicUsize>);

impl<F: Fn(Vec<u8>) -> Result<Vec<u8>, TimestampError> + Send + Sync> TimestampAuthority
    for StandIn<F>
{
    fn stamp(&self, request: Vec<u8>) -> Result<Vec<u8>, TimestampError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        (self.0)(request)
    }
}

/// Signs with an authority. Returns the report for a verifier that trusts `root`, and the number of requests to the
/// authority.
fn signed_with(
    root: &str,
    answer: impl Fn(Vec<u8>) -> Result<Vec<u8>, TimestampError> + Send + Sync + 'static,
) -> (Report, usize) {
    let Leaf { chain, key } = leaf("Example Ltd");
    let asked = Arc::new(AtomicUsize::new(0));
    let authority = Arc::new(StandIn(answer, asked.clone()));
    let signer = Signer::new(&chain, &key, Some(authority), now()).unwrap();
    assert!(signer.has_timestamps());
    assert_eq!(asked.load(Ordering::Relaxed), 0, "trying a key out does not need the authority");
    let verifier = Verifier::new(Some(signer.chain()), Some(root)).unwrap();
    let report = verifier.read(&fixed(&signer, Format::Png));
    (report, asked.load(Ordering::Relaxed))
}

#[test]
fn a_timestamp_says_when_a_picture_was_signed() {
    let authority = OpenSsl::new();
    let root = authority.root();
    let (report, asked) = signed_with(&root, move |request| Ok(authority.answer(&request)));
    assert_eq!((report.state, asked), (State::Trusted, 1), "{report:?}");
    let time = report.claim.unwrap().signature.unwrap().time.expect("a time");
    let time = chrono::DateTime::parse_from_rfc3339(&time).unwrap();
    assert!((now() - time.to_utc()).num_seconds().abs() < 60, "{time}");
}

#[test]
fn without_a_usable_answer_a_picture_is_signed_without_a_time() {
    type Answer = Box<dyn Fn(Vec<u8>) -> Result<Vec<u8>, TimestampError> + Send + Sync>;
    let authority = OpenSsl::new();
    let root = authority.root();
    let other = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = other.clone();
    signed_with(&root, move |request| {
        let answer = authority.answer(&request);
        kept.lock().unwrap().clone_from(&answer);
        Ok(answer)
    });
    let other = other.lock().unwrap().clone();
    let answers: [Answer; 4] = [
        Box::new(|_| Err(TimestampError("unreachable".to_owned()))),
        Box::new(|_| Ok(b"garbage".to_vec())),
        Box::new(|_| Ok(vec![0x30; 60_000])),
        // Belongs to another message.
        Box::new(move |_| Ok(other.clone())),
    ];
    for (index, answer) in answers.into_iter().enumerate() {
        let (report, asked) = signed_with(&root, answer);
        assert_eq!((report.state, asked), (State::Trusted, 1), "answer {index}: {report:?}");
        assert_eq!(report.claim.unwrap().signature.unwrap().time, None, "answer {index}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_asked_over_http() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/stamp", listener.local_addr().unwrap());
    let authority = Arc::new(OpenSsl::new());
    let serving = authority.clone();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let request = read_request(&mut connection).await;
            let authority = serving.clone();
            let answer = tokio::task::spawn_blocking(move || authority.answer(&request));
            let answer = answer.await.unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/timestamp-reply\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            connection.write_all(&[head.as_bytes(), &answer].concat()).await.unwrap();
        }
    });
    let Leaf { chain, key } = leaf("Example Ltd");
    let config = CredentialsConfig {
        credentials: Coverage::Generated,
        credentials_required: true,
        credentials_chain: Some(chain),
        credentials_key: Some(key.parse().unwrap()),
        credentials_timestamps: Some(address.parse().unwrap()),
        credentials_trust: Some(authority.root()),
    };
    let sign = move || {
        let credentials = Credentials::open(&config, now()).unwrap();
        let signed = fixed(credentials.signer().unwrap(), Format::WebP);
        credentials.verifier().unwrap().read(&signed)
    };
    let runtime = tokio::runtime::Handle::current();
    let report = tokio::task::spawn_blocking(move || {
        let _inside = runtime.enter();
        sign()
    });
    let report = report.await.unwrap();
    assert_eq!(report.state, State::Trusted, "{report:?}");
    assert!(report.claim.unwrap().signature.unwrap().time.is_some());
}

async fn read_request(connection: &mut tokio::net::TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        assert!(head.contains("content-type: application/timestamp-query"), "{head}");
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.unwrap().trim().parse().unwrap();
        if bytes.len() >= end + 4 + length {
            return bytes[end + 4..].to_vec();
        }
        assert!(read > 0, "a complete request");
    }
}
