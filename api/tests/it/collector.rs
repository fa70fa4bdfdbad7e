//! A trace collector (OTLP over HTTP, protobuf) that decodes the fields these tests need.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use tokio::net::TcpListener;

/// The received messages.
type Messages = Arc<Mutex<Vec<Bytes>>>;

/// The collector.
pub struct Collector {
    pub url: String,
    messages: Messages,
}

/// A span.
#[derive(Clone, Debug)]
pub struct Span {
    pub service: String,
    pub name: String,
    /// Hexadecimal, like all ids.
    pub trace: String,
    pub id: String,
    /// Empty for a root span.
    pub parent: String,
}

impl Collector {
    pub async fn start() -> Self {
        let messages = Messages::default();
        let app = Router::new().route("/v1/traces", post(receive)).with_state(messages.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, messages }
    }

    /// Returns the bytes of all messages.
    pub fn received(&self) -> Vec<u8> {
        self.messages.lock().unwrap().concat()
    }

    pub fn spans(&self) -> Vec<Span> {
        let messages = self.messages.lock().unwrap();
        messages.iter().flat_map(|message| spans_of(message)).collect()
    }
}

async fn receive(State(messages): State<Messages>, message: Bytes) {
    messages.lock().unwrap().push(message);
}

/// Decodes an `ExportTraceServiceRequest`: resource spans (1) with a resource (1) that has attributes (1), and with
/// scopes (2) that have spans (2).
fn spans_of(message: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource in parts(message, 1) {
        let attributes = parts(resource, 1).into_iter().flat_map(|resource| parts(resource, 1));
        let service = attributes
            .filter(|attribute| text(attribute, 1) == "service.name")
            .find_map(|attribute| parts(attribute, 2).first().map(|value| text(value, 1)))
            .unwrap_or_default();
        for span in parts(resource, 2).into_iter().flat_map(|scope| parts(scope, 2)) {
            let id = |number| {
                let bytes = parts(span, number).first().copied().unwrap_or_default();
                bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
            };
            let (trace, own, parent) = (id(1), id(2), id(4));
            spans.push(Span {
                service: service.clone(),
                name: text(span, 5),
                trace,
                id: own,
                parent,
            });
        }
    }
    spans
}

fn text(message: &[u8], number: u64) -> String {
    let bytes = parts(message, number).first().copied().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the length-delimited fields of a protobuf message that have this number.
fn parts(mut message: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let length = match key & 7 {
            0 => {
                varint(&mut message);
                continue;
            }
            1 => 8,
            2 => varint(&mut message) as usize,
            5 => 4,
            kind => panic!("unknown wire type {kind}"),
        };
        let (part, rest) = message.split_at(length);
        if (key >> 3, key & 7) == (number, 2) {
            found.push(part);
        }
        message = rest;
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for (n, byte) in message.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            *message = &message[n + 1..];
            return value;
        }
    }
    panic!("an unterminated varint")
}
