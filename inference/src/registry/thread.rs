//! The life of a model's thread once it is loaded: run what comes in, one after the other or, where the graph allows
//! it, several inputs of one shape at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ndarray::{Array4, Axis, concatenate};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use super::checks::Engine;
use super::handle::{Follow, Inference, Painted};
use crate::manifest::Task;
use crate::painter::{PaintError, Painting, Watch};
use crate::runs::Run;
use crate::session::{Runtime, Session, SessionError};

/// How often a thread that waits for a batch to fill looks whether something has come.
const LOOK: Duration = Duration::from_micros(200);

/// Something for a model to do.
pub struct Request {
    /// What.
    pub work: Work,
    /// When it was asked for.
    pub sent: Instant,
    /// Whose trace it belongs to.
    pub span: Span,
}

/// What a model is asked to do, and where the answer goes.
pub enum Work {
    /// Run a net on one tensor.
    Infer {
        /// The tensor, of a batch of one.
        input: Array4<f32>,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Inference, SessionError>>,
    },
    /// Paint a crop.
    Paint {
        /// The crop.
        painting: Box<Painting>,
        /// Who follows.
        follow: Follow,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Painted, PaintError>>,
    },
    /// Check whether a picture may be shown.
    CheckSafety {
        /// R, G, B of every pixel.
        rgb: Vec<u8>,
        /// Columns and rows.
        size: (u32, u32),
        /// Where the answer goes.
        answer: oneshot::Sender<Result<f32, SessionError>>,
    },
}

impl Work {
    /// Whether nobody waits for the answer any more.
    fn is_unwanted(&self) -> bool {
        match self {
            Self::Infer { answer, .. } => answer.is_closed(),
            Self::Paint { answer, .. } => answer.is_closed(),
            Self::CheckSafety { answer, .. } => answer.is_closed(),
        }
    }
}

/// One input of a batch, and where its output goes.
struct Item {
    input: Array4<f32>,
    answer: oneshot::Sender<Result<Inference, SessionError>>,
    waited: Duration,
}

/// Runs what comes in until every handle is gone.
pub fn serve(
    engine: Engine,
    name: &str,
    task: &Task,
    runtime: &Runtime,
    inbox: mpsc::Receiver<Request>,
) {
    let most = match (&engine, task.net()) {
        (Engine::Net(session), Some(net)) if session.takes_batches(net.input()) => {
            runtime.batching().0
        }
        _ => 1,
    };
    Thread { engine, name, task, runtime, inbox, aside: VecDeque::new(), most }.serve();
}

struct Thread<'a> {
    engine: Engine,
    name: &'a str,
    task: &'a Task,
    runtime: &'a Runtime,
    inbox: mpsc::Receiver<Request>,
    /// What came in while a batch was gathered that it did not fit.
    aside: VecDeque<Request>,
    /// The most inputs that one run may take.
    most: usize,
}

impl Thread<'_> {
    fn serve(mut self) {
        while let Some(request) = self.next() {
            if request.work.is_unwanted() {
                continue;
            }
            let Request { work, sent, span } = request;
            let _entered = span.entered();
            let waited = sent.elapsed();
            // Nobody is left to tell when a receiver has gone.
            match work {
                Work::Infer { input, answer } => self.infer(Item { input, answer, waited }),
                Work::Paint { painting, follow, answer } => {
                    let _ = answer.send(self.paint(&painting, &follow, waited));
                }
                Work::CheckSafety { rgb, size, answer } => {
                    let _ = answer.send(self.judge(&rgb, size));
                }
            }
        }
    }

    fn next(&mut self) -> Option<Request> {
        self.aside.pop_front().or_else(|| self.inbox.blocking_recv())
    }

    fn infer(&mut self, first: Item) {
        let batch = self.gather(first);
        let outputs = self.run(&batch);
        match outputs {
            Ok((outputs, ran)) => {
                for (item, output) in batch.into_iter().zip(outputs) {
                    let _ = item.answer.send(Ok(Inference { output, waited: item.waited, ran }));
                }
            }
            // What is too much at once may fit one by one.
            Err(SessionError::OutOfMemory(_)) if batch.len() > 1 => {
                for item in batch {
                    let alone = self.run(std::slice::from_ref(&item));
                    let _ = item.answer.send(alone.map(|(mut outputs, ran)| Inference {
                        output: outputs.remove(0),
                        waited: item.waited,
                        ran,
                    }));
                }
            }
            Err(error) => {
                for item in batch {
                    let _ = item.answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// What runs together with `first`: inputs of its shape that wait already or come in a moment. Whoever comes
    /// alone waits no longer than that moment.
    fn gather(&mut self, first: Item) -> Vec<Item> {
        let mut batch = vec![first];
        let until = Instant::now() + self.runtime.batching().1;
        while batch.len() < self.most {
            match self.inbox.try_recv() {
                Ok(request) => self.add(&mut batch, request),
                Err(mpsc::error::TryRecvError::Empty) if Instant::now() < until => {
                    std::thread::sleep(LOOK);
                }
                Err(_) => break,
            }
        }
        batch
    }

    fn add(&mut self, batch: &mut Vec<Item>, request: Request) {
        let waited = request.sent.elapsed();
        match request.work {
            work if work.is_unwanted() => {}
            Work::Infer { input, answer } if input.shape() == batch[0].input.shape() => {
                batch.push(Item { input, answer, waited });
            }
            work => self.aside.push_back(Request { work, ..request }),
        }
    }

    /// The output of each input, and how long all of them took together.
    fn run(&mut self, batch: &[Item]) -> Result<(Vec<Array4<f32>>, Duration), SessionError> {
        let (Engine::Net(session), Some(net)) = (&mut self.engine, self.task.net()) else {
            return Err(self.cannot("runs no tensor"));
        };
        let run = self.runtime.runs().begin(self.name);
        let started = Instant::now();
        let outputs = strike(self.runtime, &run)
            .and_then(|()| run_together(session, net.input(), batch, net.output()));
        Ok((heed(self.runtime, outputs)?, started.elapsed()))
    }

    fn paint(
        &mut self,
        painting: &Painting,
        follow: &Follow,
        waited: Duration,
    ) -> Result<Painted, PaintError> {
        let Engine::Painter(painter) = &mut self.engine else {
            return Err(self.cannot("does not paint").into());
        };
        let run = self.runtime.runs().begin(self.name);
        let progress = |count| {
            run.goes_on();
            (follow.progress)(count);
        };
        let watch = Watch { progress: &progress, cancel: &follow.cancel };
        let started = Instant::now();
        let made = strike(self.runtime, &run)
            .map_err(PaintError::from)
            .and_then(|()| painter.paint(painting, watch));
        if let Err(PaintError::Session(SessionError::DeviceLost(why))) = &made {
            self.runtime.runs().lose_device(why);
        }
        Ok(Painted { rgb: made?, waited, ran: started.elapsed() })
    }

    fn judge(&mut self, rgb: &[u8], size: (u32, u32)) -> Result<f32, SessionError> {
        let Engine::SafetyChecker(judge) = &mut self.engine else {
            return Err(self.cannot("does not judge"));
        };
        let _run = self.runtime.runs().begin(self.name);
        heed(self.runtime, judge.unsafety(rgb, size.0, size.1))
    }

    fn cannot(&self, what: &str) -> SessionError {
        SessionError::Failed(format!("a model of task {} {what}", self.task.as_str()))
    }
}

fn strike(runtime: &Runtime, run: &Run) -> Result<(), SessionError> {
    runtime.faults().strike(run.number())
}

/// Passes a result on; what it says of the device is said to everybody.
fn heed<T>(runtime: &Runtime, result: Result<T, SessionError>) -> Result<T, SessionError> {
    if let Err(SessionError::DeviceLost(why)) = &result {
        runtime.runs().lose_device(why);
    }
    result
}

fn run_together(
    session: &mut Session,
    input: &str,
    batch: &[Item],
    output: &str,
) -> Result<Vec<Array4<f32>>, SessionError> {
    if let [only] = batch {
        return Ok(vec![session.run(input, &only.input, output)?]);
    }
    let views: Vec<_> = batch.iter().map(|item| item.input.view()).collect();
    let wrong = |error: &dyn std::fmt::Display| SessionError::Failed(format!("a batch: {error}"));
    let together = concatenate(Axis(0), &views).map_err(|error| wrong(&error))?;
    let outputs = session.run(input, &together, output)?;
    if outputs.len_of(Axis(0)) != batch.len() {
        let (given, got) = (batch.len(), outputs.len_of(Axis(0)));
        return Err(wrong(&format!("{given} inputs gave {got} outputs")));
    }
    Ok(outputs.axis_chunks_iter(Axis(0), 1).map(|one| one.to_owned()).collect())
}
