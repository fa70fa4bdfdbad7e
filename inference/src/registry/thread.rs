//! The loop of a model's thread: serves requests one after the other. If the graph allows it, waiting inputs of the
//! same shape run together as a batch.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ndarray::{Array4, Axis, concatenate};
use tokio::sync::{mpsc, oneshot};

use super::batches::Batches;
use super::engine::Engine;
use super::request::{Inference, PaintControl, PaintResult, Request, Work};
use crate::manifest::Task;
use crate::painter::{PaintError, Painting, Watch};
use crate::runs::Run;
use crate::segment_anything::SegmentAnything;
use crate::session::{Runtime, Session, SessionError};
use crate::tensor::Tensors;

/// How often a thread polls for more inputs while a batch fills.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// One input of a batch, and the channel for its output.
struct Item {
    input: Array4<f32>,
    answer: oneshot::Sender<Result<Inference, SessionError>>,
    waited: Duration,
}

/// Serves requests until every handle is dropped.
pub fn serve(
    engine: Engine,
    name: &str,
    task: &Task,
    runtime: &Runtime,
    inbox: mpsc::Receiver<Request>,
    batches: Batches,
) {
    let deferred = VecDeque::new();
    Thread { engine, name, task, runtime, inbox, deferred, batches }.serve();
}

struct Thread<'a> {
    engine: Engine,
    name: &'a str,
    task: &'a Task,
    runtime: &'a Runtime,
    inbox: mpsc::Receiver<Request>,
    /// Requests that arrived while a batch was filling and do not fit into it.
    deferred: VecDeque<Request>,
    batches: Batches,
}

impl Thread<'_> {
    fn serve(mut self) {
        while let Some(request) = self.next() {
            if request.work.is_abandoned() {
                continue;
            }
            let Request { work, sent, span } = request;
            let _entered = span.entered();
            let waited = sent.elapsed();
            // A closed answer channel is fine: the caller is gone.
            match work {
                Work::Infer { input, answer, announcement } => {
                    drop(announcement);
                    self.infer(Item { input, answer, waited });
                }
                Work::Paint { painting, control, answer } => {
                    let _ = answer.send(self.paint(&painting, &control, waited));
                }
                Work::CheckSafety { rgb, size, answer } => {
                    let _ = answer.send(self.check_safety(&rgb, size));
                }
                Work::FindFeatures { picture, answer } => {
                    let _ = answer.send(self.point_at(|model| model.features(&picture)));
                }
                Work::FindMask { features, prompt, answer } => {
                    let _ = answer.send(self.point_at(|model| model.mask(&features, &prompt)));
                }
            }
        }
    }

    fn next(&mut self) -> Option<Request> {
        self.deferred.pop_front().or_else(|| self.inbox.blocking_recv())
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
            // Inputs that do not fit into memory together may fit one by one.
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

    /// Collects a batch: `first`, and inputs of the same shape that are waiting. Waits a moment for those that are on
    /// their way, and for no others.
    fn gather(&mut self, first: Item) -> Vec<Item> {
        let (_, _, rows, columns) = first.input.dim();
        let largest = self.batches.largest(rows, columns);
        let mut batch = vec![first];
        let until = Instant::now() + self.batches.wait();
        while batch.len() < largest {
            // Before looking, because an announced input arrives before its announcement ends.
            let expects_more = self.batches.expects_more();
            match self.inbox.try_recv() {
                Ok(request) => self.add(&mut batch, request),
                Err(mpsc::error::TryRecvError::Empty) if expects_more && Instant::now() < until => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                Err(_) => break,
            }
        }
        batch
    }

    fn add(&mut self, batch: &mut Vec<Item>, request: Request) {
        let waited = request.sent.elapsed();
        match request.work {
            work if work.is_abandoned() => {}
            Work::Infer { input, answer, .. } if input.shape() == batch[0].input.shape() => {
                batch.push(Item { input, answer, waited });
            }
            mut work => {
                if let Work::Infer { announcement, .. } = &mut work {
                    // It is here, so no batch needs to wait for it.
                    *announcement = None;
                }
                self.deferred.push_back(Request { work, ..request });
            }
        }
    }

    /// Runs a batch. Returns the output of each input, and its share of the duration.
    fn run(&mut self, batch: &[Item]) -> Result<(Vec<Array4<f32>>, Duration), SessionError> {
        let (Engine::Net(session), Some(net)) = (&mut self.engine, self.task.net()) else {
            return Err(self.unsupported("run a tensor"));
        };
        let run = self.runtime.runs().start(self.name);
        let started = Instant::now();
        let outputs = inject_fault(self.runtime, &run)
            .and_then(|()| run_batch(session, net.tensors(), batch));
        let share = started.elapsed() / batch.len() as u32;
        Ok((note_device_loss(self.runtime, outputs)?, share))
    }

    fn paint(
        &mut self,
        painting: &Painting,
        control: &PaintControl,
        waited: Duration,
    ) -> Result<PaintResult, PaintError> {
        let Engine::Painter(painter) = &mut self.engine else {
            return Err(self.unsupported("paint").into());
        };
        let run = self.runtime.runs().start(self.name);
        let progress = |count| {
            run.heartbeat();
            (control.progress)(count);
        };
        let watch = Watch { progress: &progress, cancel: &control.cancel };
        let started = Instant::now();
        let made = inject_fault(self.runtime, &run)
            .map_err(PaintError::from)
            .and_then(|()| painter.paint(painting, watch));
        if let Err(PaintError::Session(SessionError::DeviceLost(reason))) = &made {
            self.runtime.runs().set_device_lost(reason);
        }
        Ok(PaintResult { rgb: made?, waited, ran: started.elapsed() })
    }

    fn check_safety(&mut self, rgb: &[u8], size: (u32, u32)) -> Result<f32, SessionError> {
        let Engine::SafetyChecker(checker) = &mut self.engine else {
            return Err(self.unsupported("check safety"));
        };
        let _run = self.runtime.runs().start(self.name);
        note_device_loss(self.runtime, checker.unsafety(rgb, size.0, size.1))
    }

    fn point_at<T>(
        &mut self,
        work: impl FnOnce(&mut SegmentAnything) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let Engine::SegmentAnything(model) = &mut self.engine else {
            return Err(self.unsupported("segment what somebody points at"));
        };
        let run = self.runtime.runs().start(self.name);
        let found = inject_fault(self.runtime, &run).and_then(|()| work(model));
        note_device_loss(self.runtime, found)
    }

    fn unsupported(&self, work: &str) -> SessionError {
        SessionError::Failed(format!("a model of task {} cannot {work}", self.task.as_str()))
    }
}

fn inject_fault(runtime: &Runtime, run: &Run) -> Result<(), SessionError> {
    runtime.faults().inject(run.number())
}

/// Returns the result after recording a lost device for the whole process.
fn note_device_loss<T>(
    runtime: &Runtime,
    result: Result<T, SessionError>,
) -> Result<T, SessionError> {
    if let Err(SessionError::DeviceLost(reason)) = &result {
        runtime.runs().set_device_lost(reason);
    }
    result
}

fn run_batch(
    session: &mut Session,
    tensors: Tensors<'_>,
    batch: &[Item],
) -> Result<Vec<Array4<f32>>, SessionError> {
    if let [only] = batch {
        return Ok(vec![session.run(tensors, &only.input)?]);
    }
    let views: Vec<_> = batch.iter().map(|item| item.input.view()).collect();
    let failed = |error: &dyn std::fmt::Display| SessionError::Failed(format!("batch: {error}"));
    let together = concatenate(Axis(0), &views).map_err(|error| failed(&error))?;
    let outputs = session.run(tensors, &together)?;
    if outputs.len_of(Axis(0)) != batch.len() {
        let (inputs, outputs) = (batch.len(), outputs.len_of(Axis(0)));
        return Err(failed(&format!("{inputs} inputs gave {outputs} outputs")));
    }
    Ok(outputs.axis_chunks_iter(Axis(0), 1).map(|one| one.to_owned()).collect())
}
