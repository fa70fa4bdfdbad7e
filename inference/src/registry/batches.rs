//! How many inputs of one shape run together, and whether more of them are on their way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::manifest::{Precision, Task};
use crate::session::Runtime;

/// How long a model takes smaller batches after one has failed. The cause may pass, such as other work on the device.
const LOWERED_FOR: Duration = Duration::from_mins(10);

/// The batches of a model. Its thread and its handles share it.
#[derive(Clone, Debug)]
pub struct Batches {
    max_inputs: usize,
    /// A lower maximum and its end, after a batch failed whose inputs succeeded one by one.
    lowered: Arc<Mutex<Option<(usize, Instant)>>>,
    /// Maximum number of pixels, with padding, in an upscaler's batch; `None` for other tasks.
    max_pixels: Option<u64>,
    /// Whether a run takes either one input or a full batch, so that the net sees few shapes.
    has_few_shapes: bool,
    /// How long an input waits for the next one that is being prepared.
    wait: Duration,
    expected: Arc<AtomicUsize>,
}

impl Batches {
    /// Returns the batches of a model that takes at most `max_inputs` at a time.
    pub fn new(runtime: &Runtime, task: &Task, max_inputs: usize, precision: Precision) -> Self {
        let (_, wait) = runtime.batching();
        // An engine takes memory for the largest batch of the largest tiles.
        let max_inputs = match task.net().filter(|_| runtime.engines().is_some()) {
            Some(net) => net.input_shapes(max_inputs, runtime.tile_memory_bytes()).most[0],
            None => max_inputs,
        };
        let max_pixels = match task {
            Task::Upscale(contract) => {
                // The manifest states it for 32 bits.
                let per_pixel = match precision {
                    Precision::F32 => contract.tiling.memory_bytes_per_pixel,
                    Precision::F16 => contract.tiling.memory_bytes_per_pixel / 2,
                };
                Some(runtime.tile_memory_bytes() / u64::from(per_pixel.max(1)))
            }
            _ => None,
        };
        let has_few_shapes = runtime.has_few_shapes();
        let (lowered, expected) = (Arc::default(), Arc::default());
        Self { max_inputs, lowered, max_pixels, has_few_shapes, wait, expected }
    }

    /// Returns the maximum batch size for inputs of `rows` and `columns`.
    pub fn largest(&self, rows: usize, columns: usize) -> usize {
        let pixels = (rows as u64 * columns as u64).max(1);
        let fitting = self.max_pixels.map_or(usize::MAX, |most| (most / pixels) as usize);
        self.max_inputs().min(fitting).max(1)
    }

    /// Returns whether the net should get inputs of few shapes.
    pub const fn has_few_shapes(&self) -> bool {
        self.has_few_shapes
    }

    /// Returns how many inputs the next run takes when `waiting` are there, at most `largest`. More than `waiting` means that
    /// some are repeated. `recent` remembers what the last runs took. If single inputs and batches have a session each, the
    /// size may change at any time.
    pub const fn next_run(
        &self,
        recent: &mut RunSize,
        has_two_sessions: bool,
        (waiting, largest): (usize, usize),
    ) -> usize {
        match (self.has_few_shapes, has_two_sessions) {
            (false, _) => waiting,
            (true, false) => recent.next(waiting, largest),
            // On an H200, a full batch of eight takes as long as four single runs.
            (true, true) if waiting > 1 && waiting * 2 >= largest => largest,
            (true, true) => 1,
        }
    }

    /// Returns how many crops the next run paints when `waiting` are there: one, or the maximum, if the net should get few
    /// shapes. No crop is repeated to fill a batch.
    pub fn next_crops(&self, recent: &mut RunSize, waiting: usize) -> usize {
        if !self.has_few_shapes {
            return waiting;
        }
        let next = recent.next(waiting, self.max_inputs());
        if next > waiting { 1 } else { next }
    }

    /// Returns the maximum batch size for small inputs.
    pub fn max_inputs(&self) -> usize {
        self.max_inputs_at(Instant::now())
    }

    fn max_inputs_at(&self, now: Instant) -> usize {
        let lowered = *self.lowered.lock().unwrap_or_else(PoisonError::into_inner);
        match lowered {
            Some((most, until)) if now < until => most.min(self.max_inputs),
            _ => self.max_inputs,
        }
    }

    /// Takes at most `inputs` for a while, but at least one.
    pub fn take_at_most(&self, inputs: usize) {
        let lowered = (inputs.max(1), Instant::now() + LOWERED_FOR);
        *self.lowered.lock().unwrap_or_else(PoisonError::into_inner) = Some(lowered);
    }

    /// Returns how long to wait for an input that is on its way.
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns whether an input is on its way.
    pub fn expects_more(&self) -> bool {
        self.expected.load(Ordering::Acquire) > 0
    }

    /// Announces an input that is being prepared.
    pub fn announce(&self) -> Announcement {
        self.expected.fetch_add(1, Ordering::AcqRel);
        Announcement { expected: self.expected.clone() }
    }
}

/// Whether the runs of a net take one input or the most that they can, for nets that should get few shapes. It changes
/// only after several runs in a row ask for it: preparing a net for another shape takes as long as many runs.
#[derive(Debug, Default)]
pub struct RunSize {
    is_full: bool,
    /// How many of the last runs asked for the other size.
    asked: u32,
}

/// How many runs in a row must ask for the other size.
const PATIENCE: u32 = 4;

impl RunSize {
    /// Returns how many inputs the next run takes, 1 or `largest`, when `waiting` are there.
    const fn next(&mut self, waiting: usize, largest: usize) -> usize {
        if largest == 1 {
            return 1;
        }
        let wants_full = waiting >= largest || self.is_full && waiting * 2 >= largest;
        self.asked = if wants_full == self.is_full { 0 } else { self.asked + 1 };
        if self.asked == PATIENCE {
            *self = Self { is_full: wants_full, asked: 0 };
        }
        if self.is_full { largest } else { 1 }
    }
}

/// An input on its way to a model: until it arrives, or this is dropped, a batch that is filling waits for it.
#[derive(Debug)]
pub struct Announcement {
    expected: Arc<AtomicUsize>,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.expected.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches_of_eight(has_few_shapes: bool) -> Batches {
        Batches {
            max_inputs: 8,
            lowered: Arc::default(),
            max_pixels: None,
            has_few_shapes,
            wait: Duration::ZERO,
            expected: Arc::default(),
        }
    }

    #[test]
    fn batches_are_smaller_for_ten_minutes_after_one_has_failed() {
        let batches = batches_of_eight(false);
        let of_handle = batches.clone();
        assert_eq!(batches.max_inputs(), 8);
        of_handle.take_at_most(0);
        assert_eq!(batches.max_inputs(), 1);
        of_handle.take_at_most(3);
        let now = Instant::now();
        for (minutes, most) in [(0, 3), (9, 3), (11, 8)] {
            assert_eq!(
                batches.max_inputs_at(now + Duration::from_mins(minutes)),
                most,
                "{minutes}"
            );
        }
    }

    #[test]
    fn the_size_of_runs_changes_when_several_runs_ask_for_it() {
        let mut size = RunSize::default();
        let mut of = |waiting: [usize; 5]| waiting.map(|waiting| size.next(waiting, 8));
        assert_eq!(of([8, 8, 8, 2, 8]), [1; 5], "a run with few waiting inputs restarts the count");
        assert_eq!(of([8, 8, 8, 8, 5]), [1, 1, 8, 8, 8]);
        assert_eq!(of([1, 1, 1, 4, 3]), [8; 5], "half of the inputs are enough");
        assert_eq!(of([1, 1, 1, 7, 1]), [8, 8, 1, 1, 1]);
        assert_eq!(size.next(1, 1), 1);
    }

    #[test]
    fn a_run_paints_one_crop_or_the_maximum_if_the_net_should_get_few_shapes() {
        let sizes = |has_few_shapes, waiting: [usize; 6]| {
            let (batches, mut recent) = (batches_of_eight(has_few_shapes), RunSize::default());
            waiting.map(|waiting| batches.next_crops(&mut recent, waiting))
        };
        assert_eq!(sizes(false, [2, 1, 3, 8, 8, 8]), [2, 1, 3, 8, 8, 8]);
        assert_eq!(sizes(true, [2, 1, 3, 2, 1, 7]), [1; 6]);
        assert_eq!(sizes(true, [8, 8, 8, 8, 8, 5]), [1, 1, 1, 8, 8, 1]);
    }

    #[test]
    fn a_run_takes_what_waits_unless_the_net_should_get_few_shapes() {
        let sizes = |has_few_shapes, has_two_sessions, waiting: [usize; 4]| {
            let (batches, mut recent) = (batches_of_eight(has_few_shapes), RunSize::default());
            waiting.map(|waiting| batches.next_run(&mut recent, has_two_sessions, (waiting, 8)))
        };
        assert_eq!(sizes(false, false, [8, 1, 4, 3]), [8, 1, 4, 3]);
        assert_eq!(sizes(true, false, [8, 1, 4, 3]), [1; 4]);
        assert_eq!(sizes(true, true, [8, 1, 4, 3]), [8, 1, 8, 1]);
        let few = batches_of_eight(true);
        let of = |sizes| few.next_run(&mut RunSize::default(), true, sizes);
        assert_eq!([of((9, 1)), of((1, 2)), of((2, 2))], [1, 1, 2]);
    }
}
