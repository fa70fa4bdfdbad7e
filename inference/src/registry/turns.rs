//! Which of the waiting inputs a net runs next.
//!
//! On a GPU, a session prepares for an input of another shape than its last one, which can take longer than many runs. So
//! inputs of the last shape go first for a while, the shape's turn.

use std::time::{Duration, Instant};

/// A turn lasts this many times as long as the preparation for it, which then takes at most a ninth of the time.
const PREPARATIONS_PER_TURN: u32 = 8;

/// Maximum time for which an input of another shape waits longer than those that came after it.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// The rows and columns of an input.
pub type Shape = (usize, usize);

/// The turn of the shape that ran last.
#[derive(Debug, Default)]
pub struct Turn {
    shape: Option<Shape>,
    ends: Option<Instant>,
    /// The number of inputs and the duration of the first run of the turn, if it was the last run.
    first: Option<(usize, Duration)>,
    /// How long a session prepares for another shape.
    preparation: Duration,
}

impl Turn {
    /// Returns the shape whose inputs go first at this time; `None` if the oldest input does.
    pub fn preferred(&self, now: Instant) -> Option<Shape> {
        self.shape.filter(|_| self.ends.is_some_and(|ends| now < ends))
    }

    /// Returns whether inputs of this shape ran last, or none has run yet.
    pub fn is_of(&self, shape: Shape) -> bool {
        self.shape.is_none_or(|last| last == shape)
    }

    /// Records a run of `inputs` of a shape, which started at `started`.
    pub fn record(&mut self, shape: Shape, inputs: usize, started: Instant, took: Duration) {
        if self.shape != Some(shape) {
            let turn = (self.preparation * PREPARATIONS_PER_TURN).min(LONGEST_TURN);
            let first = self.shape.map(|_| (inputs, took));
            *self = Self { shape: Some(shape), ends: Some(started + turn), first, ..*self };
        } else if let Some((first_inputs, first)) = self.first.take()
            && first_inputs == inputs
        {
            self.preparation = first.saturating_sub(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Shape = (64, 64);
    const LARGE: Shape = (256, 256);

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_turn_is_as_long_as_the_preparation_demands() {
        let start = Instant::now();
        let at = |after: u64| start + seconds(after);
        let mut turn = Turn::default();
        assert_eq!(turn.preferred(start), None);
        // What the first shape ever takes includes more than its preparation.
        turn.record(SMALL, 1, start, seconds(100));
        turn.record(SMALL, 1, start, seconds(2));
        turn.record(LARGE, 1, at(10), seconds(4));
        assert_eq!(turn.preferred(at(10)), None, "nobody knows yet how long it takes");
        turn.record(LARGE, 1, at(14), seconds(3));
        turn.record(LARGE, 1, at(17), seconds(3));
        turn.record(SMALL, 1, at(20), seconds(3));
        assert_eq!([20, 27].map(|after| turn.preferred(at(after))), [Some(SMALL); 2]);
        assert_eq!(turn.preferred(at(28)), None);
    }

    #[test]
    fn a_turn_does_not_last_longer_than_people_wait() {
        let start = Instant::now();
        let mut turn = Turn { shape: Some(SMALL), preparation: seconds(60), ..Turn::default() };
        turn.record(LARGE, 1, start, seconds(60));
        assert_eq!(turn.preferred(start + seconds(9)), Some(LARGE));
        assert_eq!(turn.preferred(start + seconds(10)), None);
    }

    #[test]
    fn runs_of_other_sizes_say_nothing_about_the_preparation() {
        let start = Instant::now();
        let mut turn = Turn { shape: Some(SMALL), ..Turn::default() };
        turn.record(LARGE, 8, start, seconds(5));
        turn.record(LARGE, 1, start, seconds(1));
        turn.record(LARGE, 8, start, seconds(1));
        assert_eq!(turn.preparation, Duration::ZERO);
    }
}
