//! How much a process sends at once in each lane.

use retouch_core::webhooks::Lane;

/// The maximum number of concurrent attempts of this process in a lane.
pub struct Places {
    pub in_all: usize,
    pub per_webhook: i64,
    /// For all webhooks of an account together. Otherwise, four accounts whose receivers hang could take all places, and stop
    /// the deliveries to everybody else.
    pub per_owner: i64,
}

pub const fn places(lane: Lane) -> Places {
    match lane {
        Lane::Fast => Places { in_all: 64, per_webhook: 4, per_owner: 8 },
        Lane::Slow => Places { in_all: 16, per_webhook: 2, per_owner: 4 },
    }
}

/// Returns the maximum number of concurrent DNS lookups of a lane. Twice its places, because an abandoned lookup keeps
/// its permit until it returns.
pub const fn lookups(lane: Lane) -> usize {
    2 * places(lane).in_all
}

/// Returns how many more deliveries may start while `taken` are in flight, so that each gets one of the `free` lookup permits
/// immediately. Waiting for a permit would use up the time of the attempt.
pub const fn room(lane: Lane, taken: usize, free: usize) -> usize {
    let (places, lookups) = (places(lane).in_all.saturating_sub(taken), free.saturating_sub(taken));
    if places < lookups { places } else { lookups }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_starts_only_where_its_name_can_be_resolved_at_once() {
        assert_eq!(room(Lane::Slow, 0, 32), 16);
        assert_eq!(room(Lane::Slow, 16, 16), 0, "all places are taken");
        assert_eq!(room(Lane::Slow, 6, 26), 10, "slow lookups in flight take no room from others");
        assert_eq!(room(Lane::Slow, 6, 8), 2, "lookups that nobody waits for do");
        assert_eq!(room(Lane::Slow, 6, 0), 0);
    }
}
