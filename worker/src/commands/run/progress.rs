//! Shows the progress of a run on a terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use retouch_catalog::{Count, CountUnit};

/// Clears the rest of a longer earlier text on the line (ECMA-48, EL).
const CLEAR_REST: &str = "\x1b[K";

/// A line on standard error that changes during a run.
#[derive(Clone, Copy)]
pub struct Line {
    is_shown: bool,
}

impl Line {
    /// Creates the line of a run; `is_alone` says that nothing else shows progress. It stays empty unless standard error is a
    /// terminal.
    pub fn new(is_alone: bool) -> Self {
        Self { is_shown: is_alone && io::stderr().is_terminal() }
    }

    /// Shows the finished share (0 to 1), the count, and the time left. A share of 1 ends the line.
    pub fn show(self, fraction: f32, count: Option<Count>, left: Option<Duration>) {
        if self.is_shown {
            eprint!("{}", text(fraction, count, left));
        }
    }
}

fn text(fraction: f32, count: Option<Count>, left: Option<Duration>) -> String {
    let count = count.map_or_else(String::new, |Count { unit, done, total }| {
        let unit = match unit {
            CountUnit::Tiles => "tile",
            CountUnit::Steps => "step",
        };
        format!(" ({unit} {done} of {total})")
    });
    let left = left.map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
    let end = if fraction < 1.0 { '\r' } else { '\n' };
    format!("{:>3.0} %{count}{left}{CLEAR_REST}{end}", fraction * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_ends_with_the_run() {
        let tiles = Count { unit: CountUnit::Tiles, done: 3, total: 12 };
        let half = text(0.25, Some(tiles), Some(Duration::from_millis(7900)));
        assert_eq!(half, " 25 % (tile 3 of 12), 7 s left\x1b[K\r");
        let steps = Count { unit: CountUnit::Steps, done: 20, total: 20 };
        assert_eq!(text(1.0, Some(steps), None), "100 % (step 20 of 20)\x1b[K\n");
        assert_eq!(text(0.0, None, None), "  0 %\x1b[K\r");
    }
}
