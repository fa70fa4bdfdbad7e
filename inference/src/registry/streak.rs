//! Which of the waiting inputs a net runs next.
//!
//! On a GPU, a session prepares for an input of another shape than its last one, which can take longer than many runs. So
//! inputs of the last shape go first for a while: a streak.

use std::time::{Duration, Instant};

/// A streak lasts this many times as long as the preparation for it, which then takes at most a ninth of the time.
const PREPARATIONS_PER_STREAK: u32 = 8;

/// Maximum length of a streak. Somebody waits for a sample for at most ten seconds.
const LONGEST_STREAK: Duration = Duration::from_secs(3);

/// The rows and columns of an input.
pub type Shape = (usize, usize);

/// The streak of the shape that ran last.
#[derive(Debug, Default)]
pub struct Streak {
    shape: Option<Shape>,
    since: Option<Instant>,
    /// The number of inputs and the duration of the first run of the streak; `None` for the first shape ever, whose first run
    /// does more than to prepare.
    first: Option<(usize, Duration)>,
    /// The shortest of the later runs with so many inputs.
    shortest: Option<Duration>,
    /// How long a session prepares for another shape.
    preparation: Duration,
}

impl Streak {
    /// Returns the shape whose inputs go first at this time; `None` if the oldest input does.
    pub fn preferred(&self, now: Instant) -> Option<Shape> {
        // The second run of a streak shows how long the session prepared for the first one.
        let is_unknown = self.first.is_some() && self.shortest.is_none();
        let length = if is_unknown {
            LONGEST_STREAK
        } else {
            (self.preparation * PREPARATIONS_PER_STREAK).min(LONGEST_STREAK)
        };
        self.shape.filter(|_| self.since.is_some_and(|since| now < since + length))
    }

    /// Returns whether inputs of this shape ran last, or none has run yet.
    pub fn is_of(&self, shape: Shape) -> bool {
        self.shape.is_none_or(|last| last == shape)
    }

    /// Records a run of `inputs` of a shape, which started at `started`.
    pub fn record(&mut self, shape: Shape, inputs: usize, started: Instant, took: Duration) {
        if self.shape != Some(shape) {
            let first = self.shape.map(|_| (inputs, took));
            let preparation = self.preparation;
            let (shape, since) = (Some(shape), Some(started));
            *self = Self { shape, since, first, shortest: None, preparation };
        } else if let Some((first_inputs, first)) = self.first
            && first_inputs == inputs
        {
            let shortest = self.shortest.map_or(took, |shortest| shortest.min(took));
            self.shortest = Some(shortest);
            self.preparation = first.saturating_sub(shortest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Shape = (64, 64);
    const LARGE: Shape = (256, 256);

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_streak_is_as_long_as_the_preparation_demands() {
        let start = Instant::now();
        let at = |after: u64| start + ms(after);
        let mut streak = Streak::default();
        assert_eq!(streak.preferred(start), None);
        streak.record(SMALL, 1, start, ms(9000));
        streak.record(SMALL, 1, start, ms(20));
        assert_eq!(streak.preferred(start), None, "nobody knows how long it prepares");
        streak.record(LARGE, 1, at(100), ms(150));
        assert_eq!(
            streak.preferred(at(250)),
            Some(LARGE),
            "the next run shows how long it prepared"
        );
        // It also allocates its tensors.
        streak.record(LARGE, 1, at(250), ms(130));
        assert_eq!(streak.preferred(at(400)), None);
        streak.record(LARGE, 1, at(400), ms(50));
        assert_eq!([450, 899].map(|after| streak.preferred(at(after))), [Some(LARGE); 2]);
        assert_eq!(streak.preferred(at(900)), None);
        streak.record(SMALL, 1, at(1000), ms(20));
        streak.record(SMALL, 1, at(1020), ms(20));
        assert_eq!(streak.preferred(at(1040)), None, "it did not have to prepare");
    }

    #[test]
    fn no_streak_lasts_longer_than_people_wait() {
        let start = Instant::now();
        let mut streak = Streak { shape: Some(SMALL), ..Streak::default() };
        streak.record(LARGE, 1, start, ms(9000));
        let ends = |streak: &Streak| [2999, 3000].map(|after| streak.preferred(start + ms(after)));
        assert_eq!(ends(&streak), [Some(LARGE), None], "its second run may never come");
        streak.record(LARGE, 1, start, ms(1000));
        assert_eq!(ends(&streak), [Some(LARGE), None]);
    }

    #[test]
    fn runs_of_other_sizes_say_nothing_about_the_preparation() {
        let start = Instant::now();
        let mut streak = Streak { shape: Some(SMALL), ..Streak::default() };
        streak.record(LARGE, 8, start, ms(5000));
        streak.record(LARGE, 1, start, ms(1000));
        assert_eq!(streak.preparation, Duration::ZERO);
        streak.record(LARGE, 8, start, ms(4000));
        assert_eq!(streak.preparation, ms(1000));
    }
}
