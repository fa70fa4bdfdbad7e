//! Builds the engine of a net while the device's own kernels serve, and hands it to the model's thread if it is right.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::{Span, info, warn};

use super::checks::{self, Reference};
use super::kept::Rewrites;
use super::message::Message;
use super::opened::{Candidate, Opened};
use crate::manifest::Manifest;
use crate::memory::Tenant;
use crate::session::Runtime;

/// The interval between attempts to load an engine that does not fit beside the other models.
const LOOK: Duration = Duration::from_secs(5);

/// The inputs for building the engine of one model.
pub struct Order {
    pub manifest: Manifest,
    /// Opens engines.
    pub runtime: Runtime,
    pub rewrites: Rewrites,
    /// The memory that the model needs, in bytes; its engine counts for as much until it replaces the other session.
    pub needed: u64,
    pub reference: Reference,
    /// Sends to the model's thread.
    pub messages: mpsc::WeakSender<Message>,
}

impl Order {
    /// Starts a thread that builds the engine. Nobody waits for the thread: a process that stops leaves it behind.
    pub fn start(self) {
        let (name, span) = (format!("engine-{}", self.manifest.name), Span::current());
        let model = self.manifest.name.clone();
        let started =
            thread::Builder::new().name(name).spawn(move || span.in_scope(|| self.fill()));
        if let Err(error) = started {
            warn!(model.name = model, %error, "No thread can build the engine of {model}");
        }
    }

    fn fill(self) {
        let memory = self.runtime.memory().clone();
        let name = &self.manifest.name;
        let builder = self.runtime.engines().map_or("", |engines| engines.builder.as_str());
        while self.is_wanted() {
            let build = memory.begin_build();
            let tenant = memory.register(name, || {});
            if self.is_wanted() && tenant.try_acquire(self.needed) {
                let started = Instant::now();
                match self.build(&tenant) {
                    Ok(engine) => {
                        let duration_ms = started.elapsed().as_millis() as u64;
                        info!(model.name = name, duration_ms, "Built {name} with {builder}");
                        return self.deliver(engine, tenant);
                    }
                    Err(Some(reason)) => {
                        warn!(
                            model.name = name,
                            reason, "Model {name} stays without {builder}: {reason}"
                        );
                        return count("refused", name);
                    }
                    // Others need the memory. The engine is in the folder, so the next attempt is short.
                    Err(None) => {}
                }
            }
            drop((tenant, build));
            thread::sleep(LOOK);
        }
    }

    /// Returns whether the model is still there.
    fn is_wanted(&self) -> bool {
        self.messages.upgrade().is_some()
    }

    /// Builds the engine and compares it.
    ///
    /// # Errors
    /// Why it must not serve; `None` if others need its memory.
    fn build(&self, tenant: &Tenant) -> Result<Opened, Option<String>> {
        let may_go_on = || !tenant.is_asked() && self.is_wanted();
        let Self { manifest, runtime, rewrites, reference, .. } = self;
        checks::load_engine(manifest, runtime, *rewrites, reference, may_go_on)
    }

    fn deliver(&self, engine: Opened, tenant: Tenant) {
        let Some(messages) = self.messages.upgrade() else { return };
        let candidate = Candidate { opened: engine, runtime: self.runtime.clone(), tenant };
        // The thread may have ended, which is fine.
        let _ = messages.blocking_send(Message::Swap(Box::new(candidate)));
    }
}

pub fn count(outcome: &'static str, model: &str) {
    metrics::counter!("retouch_engines_total", "model" => model.to_owned(), "outcome" => outcome)
        .increment(1);
}
