//! The loop of a model's thread: serves requests one after the other. If the graph allows it, waiting inputs of the
//! same shape run together as a batch, and so do waiting crops. While other models need the memory, the thread stays and
//! its model is unloaded.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ndarray::Array4;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::batches::{Batches, RunSize};
use super::crops::{self, Crop};
use super::message::{Inference, Message, PaintResult, Request, Work};
use super::opened::Opened;
use super::residence::{NotLoaded, Residence};
use super::streak::{Shape, Streak};
use crate::manifest::{Manifest, Task};
use crate::output::Output;
use crate::painter::{PaintError, Painting};
use crate::runs::Run;
use crate::segment_anything::SegmentAnything;
use crate::session::{Full, PictureNet, Runtime, SessionError};

/// How often a thread polls for more inputs while a batch fills.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Answers a request that nobody waits for.
const ABANDONED: &str = "no caller waits for the model anymore";

/// One input of a batch, and the channel for its output.
struct Item {
    input: Array4<u8>,
    answer: oneshot::Sender<Result<Inference, SessionError>>,
    waited: Duration,
}

/// Serves requests until every handle is dropped.
pub fn serve(
    opened: Opened,
    residence: Residence,
    manifest: &Manifest,
    runtime: &Runtime,
    inbox: mpsc::Receiver<Message>,
    batches: Batches,
) {
    let Manifest { name, task, .. } = manifest;
    let thread = Thread {
        opened: Some(opened),
        residence,
        name,
        task,
        runtime,
        inbox,
        deferred: VecDeque::new(),
        batches,
        run_size: RunSize::default(),
        streak: Streak::default(),
        idle_since: Instant::now(),
        has_evicted: false,
    };
    thread.serve();
}

struct Thread<'a> {
    /// The opened model; `None` while it has given way to others.
    opened: Option<Opened>,
    residence: Residence,
    name: &'a str,
    task: &'a Task,
    runtime: &'a Runtime,
    inbox: mpsc::Receiver<Message>,
    /// Messages that were received and not handled yet.
    deferred: VecDeque<Message>,
    batches: Batches,
    run_size: RunSize,
    streak: Streak,
    /// When the last work ended.
    idle_since: Instant,
    /// Whether other models had to give way for the inputs of a batch that failed.
    has_evicted: bool,
}

impl Thread<'_> {
    fn serve(mut self) {
        while let Some(message) = self.next() {
            match message {
                Message::Request(request) => self.answer(request),
                // `next` looks before each message.
                Message::GiveWay => {}
                Message::Swap(candidate) => self.residence.swap(&mut self.opened, *candidate),
            }
        }
    }

    /// Does the work of a request, unless its caller is gone, and sends the result back.
    fn answer(&mut self, Request { work, sent, span }: Request) {
        if work.is_abandoned() {
            return;
        }
        let _entered = span.entered();
        if let Err(error) = self.load(|| !work.is_abandoned()) {
            work.refuse(error);
            return;
        }
        self.residence.touch();
        let waited = sent.elapsed();
        // A closed answer channel is fine: the caller is gone.
        match work {
            Work::Infer { input, answer, announcement } => {
                drop(announcement);
                self.infer(Item { input, answer, waited });
            }
            Work::Paint { painting, control, answer } => {
                self.paint(Crop { painting, control, answer, waited });
            }
            Work::CheckSafety { rgb, size, answer } => {
                let check = |own: &mut Self| own.check_safety(&rgb, size);
                let checked = self.with_room(|| !answer.is_closed(), SessionError::full, check);
                let _ = answer.send(checked);
            }
            Work::FindFeatures { picture, answer } => {
                let find = |own: &mut Self| own.point_at(|model| model.features(&picture));
                let found = self.with_room(|| !answer.is_closed(), SessionError::full, find);
                let _ = answer.send(found);
            }
            Work::FindMask { features, prompt, answer } => {
                let find = |own: &mut Self| own.point_at(|model| model.mask(&features, &prompt));
                let found = self.with_room(|| !answer.is_closed(), SessionError::full, find);
                let _ = answer.send(found);
            }
        }
        self.idle_since = Instant::now();
    }

    /// Returns the next message. Before that, gives way to other models when it is time to.
    fn next(&mut self) -> Option<Message> {
        loop {
            let is_asked = self.opened.is_some() && self.residence.is_asked();
            if is_asked && self.residence.must_yield(self.idle()) {
                self.unload();
                continue;
            }
            if let Some(message) = self.next_deferred() {
                return Some(message);
            }
            if !is_asked {
                return self.inbox.blocking_recv();
            }
            match self.inbox.try_recv() {
                Ok(message) => return Some(message),
                Err(mpsc::error::TryRecvError::Empty) => std::thread::sleep(POLL_INTERVAL),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
            }
        }
    }

    /// Returns the oldest deferred message, or the oldest one that may go before it.
    fn next_deferred(&mut self) -> Option<Message> {
        let preferred =
            self.streak.preferred(Instant::now()).filter(|_| self.batches.has_few_shapes());
        let Some(preferred) = preferred else { return self.deferred.pop_front() };
        while let Ok(message) = self.inbox.try_recv() {
            self.defer(message);
        }
        // An input goes before other inputs, and before nothing else.
        let shapes = self.deferred.iter().map_while(shape_of).position(|shape| shape == preferred);
        self.deferred.remove(shapes.unwrap_or(0))
    }

    fn defer(&mut self, mut message: Message) {
        if let Message::Request(Request { work: Work::Infer { announcement, .. }, .. }) =
            &mut message
        {
            // It is here, so no batch needs to wait for it.
            *announcement = None;
        }
        self.deferred.push_back(message);
    }

    /// Returns how long the model has had no work; `None` while some waits or is on its way.
    fn idle(&self) -> Option<Duration> {
        let has_work =
            !self.deferred.is_empty() || !self.inbox.is_empty() || self.batches.expects_more();
        (!has_work).then(|| self.idle_since.elapsed())
    }

    fn unload(&mut self) {
        if let Some(opened) = self.opened.take() {
            self.residence.unload(Some(opened));
        }
    }

    /// Loads the model again if it has given way.
    fn load(&mut self, mut is_wanted: impl FnMut() -> bool) -> Result<(), SessionError> {
        if self.opened.is_some() {
            return Ok(());
        }
        let mut loaded = self.load_again(false, &mut is_wanted);
        if matches!(&loaded, Err(NotLoaded::Failed(error)) if error.full() == Some(Full::Device))
            && self.residence.has_company()
        {
            warn!(model.name = self.name, "Out of memory; loading again without other models");
            loaded = self.load_again(true, is_wanted);
            self.residence.admit_others();
        }
        match loaded {
            Ok(opened) => self.opened = Some(opened),
            Err(NotLoaded::Abandoned) => return Err(SessionError::Failed(ABANDONED.to_owned())),
            Err(NotLoaded::Failed(error)) => return note_device_loss(self.runtime, Err(error)),
        }
        Ok(())
    }

    fn load_again(
        &mut self,
        alone: bool,
        is_wanted: impl FnMut() -> bool,
    ) -> Result<Opened, NotLoaded> {
        let (inbox, deferred) = (&mut self.inbox, &mut self.deferred);
        self.residence.load_again(alone, is_wanted, || {
            deferred.extend(std::iter::from_fn(|| inbox.try_recv().ok()));
            let is_engine = |message: &Message| matches!(message, Message::Swap(_));
            let at = deferred.iter().position(is_engine)?;
            match deferred.remove(at)? {
                Message::Swap(candidate) => Some(*candidate),
                Message::Request(_) | Message::GiveWay => None,
            }
        })
    }

    /// Runs `work`. If it runs out of memory while other models are loaded, unloads them and runs it once more, unless the
    /// caller is gone by then. If it has reached the limit of its own memory, others stay, and it is loaded again: that
    /// memory may be in pieces.
    fn with_room<T, E>(
        &mut self,
        is_wanted: impl FnMut() -> bool,
        full: impl Fn(&E) -> Option<Full>,
        mut work: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let first = work(self);
        let alone = match first.as_ref().err().and_then(full) {
            Some(Full::Device) if self.residence.has_company() => true,
            // Without a limit, its files are not kept open.
            Some(Full::OwnLimit) if self.runtime.memory().limit().is_some() => false,
            _ => return first,
        };
        warn!(model.name = self.name, alone, "Out of memory; loading the model again");
        self.has_evicted = alone;
        self.unload();
        match self.load_again(alone, is_wanted) {
            Ok(opened) => self.opened = Some(opened),
            Err(NotLoaded::Abandoned) => return first,
            Err(NotLoaded::Failed(error)) => {
                return note_device_loss(self.runtime, Err(error)).or(first);
            }
        }
        let second = work(self);
        if alone {
            self.residence.admit_others();
        }
        second
    }

    fn infer(&mut self, first: Item) {
        let (_, rows, columns, _) = first.input.dim();
        let largest = self.batches.largest(rows, columns);
        let batch = self.gather(first, largest);
        let separates = matches!(&self.opened, Some(Opened::Net(net)) if net.separates_batches());
        let inputs = self.batches.next_run(&mut self.run_size, separates, (batch.len(), largest));
        if inputs < batch.len() {
            self.infer_each_alone(batch);
            return;
        }
        let outputs = match inputs {
            1 => {
                let is_wanted = || !batch[0].answer.is_closed();
                self.with_room(is_wanted, SessionError::full, |own| own.run(&batch, 1))
            }
            _ => self.run(&batch, inputs),
        };
        match outputs {
            Ok((outputs, ran)) => {
                for (item, output) in batch.into_iter().zip(outputs) {
                    let _ = item.answer.send(Ok(Inference { output, waited: item.waited, ran }));
                }
            }
            // Inputs that do not fit into memory together may fit one by one, and an input that fails must not fail the
            // others.
            Err(error @ (SessionError::OutOfMemory(_) | SessionError::Failed(_))) if inputs > 1 => {
                warn!(model.name = self.name, inputs, %error, "A batch failed; running its inputs one by one");
                self.has_evicted = false;
                let all_succeed = self.infer_each_alone(batch);
                self.lower_batches(inputs, all_succeed);
            }
            Err(error) => {
                for item in batch {
                    let _ = item.answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Takes smaller batches for a while after a batch of `inputs` failed, unless an input was to blame or other work took
    /// the memory.
    fn lower_batches(&self, inputs: usize, all_succeed: bool) {
        if all_succeed && !self.has_evicted && !self.runtime.memory().is_building() {
            self.batches.take_at_most(inputs / 2);
        }
    }

    /// Returns whether all of them succeed.
    fn infer_each_alone(&mut self, batch: Vec<Item>) -> bool {
        let mut all_succeed = true;
        for item in batch {
            let one = std::slice::from_ref(&item);
            // The input before may have left no model loaded.
            let is_wanted = || !item.answer.is_closed();
            let loaded = self.load(is_wanted);
            let alone = loaded.and_then(|()| {
                self.with_room(is_wanted, SessionError::full, |own| own.run(one, 1))
            });
            all_succeed &= alone.is_ok();
            let _ = item.answer.send(alone.map(|(mut outputs, ran)| Inference {
                output: outputs.remove(0),
                waited: item.waited,
                ran,
            }));
        }
        all_succeed
    }

    /// Collects a batch: `first`, and inputs of the same shape that are waiting. Waits a moment for those that are on
    /// their way, and for no others.
    fn gather(&mut self, first: Item, largest: usize) -> Vec<Item> {
        let mut batch = vec![first];
        for message in std::mem::take(&mut self.deferred) {
            self.add(&mut batch, largest, message);
        }
        let until = Instant::now() + self.batches.wait();
        while batch.len() < largest {
            // Before looking, because an announced input arrives before its announcement ends.
            let expects_more = self.batches.expects_more();
            match self.inbox.try_recv() {
                Ok(message) => self.add(&mut batch, largest, message),
                Err(mpsc::error::TryRecvError::Empty) if expects_more && Instant::now() < until => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                Err(_) => break,
            }
        }
        batch
    }

    fn add(&mut self, batch: &mut Vec<Item>, largest: usize, message: Message) {
        let Message::Request(request) = message else {
            return self.deferred.push_back(message);
        };
        let waited = request.sent.elapsed();
        match request.work {
            work if work.is_abandoned() => {}
            Work::Infer { input, answer, .. }
                if batch.len() < largest && input.shape() == batch[0].input.shape() =>
            {
                batch.push(Item { input, answer, waited });
            }
            work => self.defer(Message::Request(Request { work, ..request })),
        }
    }

    /// Runs a batch, as one of `inputs`. Returns the output of each input, and its share of the duration. If it fails on an
    /// engine that was built in the background, runs it again without.
    fn run(
        &mut self,
        batch: &[Item],
        inputs: usize,
    ) -> Result<(Vec<Output>, Duration), SessionError> {
        let first = self.run_once(batch, inputs);
        let Err(SessionError::Failed(reason)) = &first else { return first };
        if !self.residence.has_engine().load(Ordering::Acquire) {
            return first;
        }
        // Both at a time may not fit into memory.
        drop(self.opened.take());
        match self.residence.open_without_engine(reason) {
            Ok(opened) => {
                self.opened = Some(opened);
                self.run_once(batch, inputs)
            }
            Err(reason) => {
                self.residence.unload(None);
                note_device_loss(self.runtime, Err(SessionError::from_message(reason)))
            }
        }
    }

    fn run_once(
        &mut self,
        batch: &[Item],
        inputs: usize,
    ) -> Result<(Vec<Output>, Duration), SessionError> {
        let has_engine = self.residence.has_engine().load(Ordering::Acquire);
        let Some(Opened::Net(net)) = &mut self.opened else {
            return Err(self.unsupported("run on a picture"));
        };
        let run = self.runtime.runs().start(self.name);
        let started = Instant::now();
        let (_, rows, columns, _) = batch[0].input.dim();
        let faults = self.runtime.faults();
        faults.inject_preparation(self.streak.is_of((rows, columns)));
        let outputs = inject_fault(self.runtime, &run)
            .and_then(|()| if has_engine { faults.inject_into_engine() } else { Ok(()) })
            .and_then(|()| run_batch(net, batch, inputs));
        let took = started.elapsed();
        let outputs = note_device_loss(self.runtime, outputs)?;
        self.streak.record((rows, columns), inputs, started, took);
        Ok((outputs, took / batch.len() as u32))
    }

    fn paint(&mut self, first: Crop) {
        let batch = self.gather_crops(first);
        if batch.len() == 1 {
            self.paint_each_alone(batch);
            return;
        }
        let count = batch.len();
        let painted = self.paint_crops(&batch);
        let mut again = Vec::new();
        for (crop, painted) in batch.into_iter().zip(painted) {
            match &painted {
                // Crops that do not fit into memory together may fit one by one, and a crop that fails must not fail
                // the others.
                Err(PaintError::Session(
                    error @ (SessionError::OutOfMemory(_) | SessionError::Failed(_)),
                )) => {
                    if again.is_empty() {
                        warn!(model.name = self.name, count, %error, "A batch failed; painting its crops one by one");
                    }
                    again.push(crop);
                }
                // A closed answer channel is fine: the caller is gone.
                _ => drop(crop.answer.send(painted)),
            }
        }
        if !again.is_empty() {
            self.has_evicted = false;
            let all_succeed = self.paint_each_alone(again);
            self.lower_batches(count, all_succeed);
        }
    }

    /// Returns whether all of them succeed.
    fn paint_each_alone(&mut self, crops: Vec<Crop>) -> bool {
        let mut all_succeed = true;
        for crop in crops {
            let alone = |own: &mut Self| own.paint_crops(std::slice::from_ref(&crop)).remove(0);
            // The crop before may have left no model loaded.
            let is_wanted = || !crop.answer.is_closed();
            let painted = match self.load(is_wanted) {
                Ok(()) => self.with_room(is_wanted, crops::full, alone),
                Err(error) => Err(error.into()),
            };
            all_succeed &= painted.is_ok();
            let _ = crop.answer.send(painted);
        }
        all_succeed
    }

    /// Collects a batch: `first`, and waiting crops that line up with it. The others keep their places.
    fn gather_crops(&mut self, first: Crop) -> Vec<Crop> {
        while let Ok(message) = self.inbox.try_recv() {
            self.defer(message);
        }
        let fits = |message: &&Message| match message {
            Message::Request(Request { work, .. }) if work.is_abandoned() => false,
            Message::Request(Request { work: Work::Paint { painting, .. }, .. }) => {
                self.lines_up(&first.painting, painting)
            }
            _ => false,
        };
        let waiting = 1 + self.deferred.iter().filter(fits).count();
        let waiting = waiting.min(self.batches.max_inputs());
        let size = self.batches.next_crops(&mut self.run_size, waiting);
        let mut batch = vec![first];
        if size > 1 {
            for message in std::mem::take(&mut self.deferred) {
                self.add_crop(&mut batch, size, message);
            }
        }
        batch
    }

    fn add_crop(&mut self, batch: &mut Vec<Crop>, size: usize, message: Message) {
        let Message::Request(request) = message else {
            return self.deferred.push_back(message);
        };
        let waited = request.sent.elapsed();
        match request.work {
            work if work.is_abandoned() => {}
            Work::Paint { painting, control, answer }
                if batch.len() < size && self.lines_up(&batch[0].painting, &painting) =>
            {
                batch.push(Crop { painting, control, answer, waited });
            }
            work => self.deferred.push_back(Message::Request(Request { work, ..request })),
        }
    }

    fn lines_up(&self, first: &Painting, other: &Painting) -> bool {
        matches!(&self.opened, Some(Opened::Painter(painter)) if painter.lines_up(first, other))
    }

    fn paint_crops(&mut self, crops: &[Crop]) -> Vec<Result<PaintResult, PaintError>> {
        let unsupported = self.unsupported("paint");
        let Some(Opened::Painter(painter)) = &mut self.opened else {
            return crops.iter().map(|_| Err(unsupported.clone().into())).collect();
        };
        let run = self.runtime.runs().start(self.name);
        crops::paint(painter.as_mut(), self.runtime, &run, crops)
    }

    fn check_safety(&mut self, rgb: &[u8], size: (u32, u32)) -> Result<f32, SessionError> {
        let Some(Opened::SafetyChecker(checker)) = &mut self.opened else {
            return Err(self.unsupported("check safety"));
        };
        let _run = self.runtime.runs().start(self.name);
        note_device_loss(self.runtime, checker.unsafety(rgb, size.0, size.1))
    }

    fn point_at<T>(
        &mut self,
        work: impl FnOnce(&mut SegmentAnything) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let Some(Opened::SegmentAnything(model)) = &mut self.opened else {
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

/// Returns the shape of an input that a net should run; `None` for any other message.
fn shape_of(message: &Message) -> Option<Shape> {
    let Message::Request(Request { work: Work::Infer { input, .. }, .. }) = message else {
        return None;
    };
    let (_, rows, columns, _) = input.dim();
    Some((rows, columns))
}

fn inject_fault(runtime: &Runtime, run: &Run) -> Result<(), SessionError> {
    runtime.faults().inject(run.number())
}

/// Returns the result after recording a lost device for the whole process.
fn note_device_loss<T>(
    runtime: &Runtime,
    result: Result<T, SessionError>,
) -> Result<T, SessionError> {
    if let Err(error) = &result {
        runtime.note_loss(error);
    }
    result
}

/// Runs a batch, with its last input repeated until there are `inputs`.
fn run_batch(
    net: &mut PictureNet,
    batch: &[Item],
    inputs: usize,
) -> Result<Vec<Output>, SessionError> {
    let pictures: Vec<_> = batch.iter().map(|item| item.input.view()).collect();
    net.run_each(&pictures, inputs)
}
