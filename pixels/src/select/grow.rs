//! Grows regions from seeds, all at once, until they meet.
//!
//! Each pixel without a label gets the label of the seed from which the cheapest path leads to it: the image foresting
//! transform with additive path costs (Falcão, Stolfi, Lotufo, "The image foresting transform", 2004). Where the cost of
//! a step is the change of color it crosses, that is segmentation by geodesic distance (Bai, Sapiro, "A geodesic
//! framework for fast interactive image and video segmentation and matting", 2007). Costs are small integers, so
//! the queue is a ring of buckets (Dial, "Algorithm 360", 1969) and the time is linear.

/// The region of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// Not known yet.
    Unknown,
    /// Not the selection.
    Outside,
    /// The selection.
    Inside,
}

/// The cost of a step is at most this.
pub(super) const MAX_COST: u16 = 511;

/// Labels every pixel that a path leads to. `cost` gets the label that grows, the pixel it comes from and the one it
/// goes to, and returns the cost of the step, 1 to [`MAX_COST`].
pub(super) fn grow(labels: &mut [Label], width: usize, cost: impl Fn(Label, usize, usize) -> u16) {
    let height = labels.len() / width;
    let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); usize::from(MAX_COST) + 1];
    let mut distance = vec![u32::MAX; labels.len()];
    let beside = |at: usize| {
        let (x, y) = (at % width, at / width);
        [
            (x > 0).then(|| at - 1),
            (x + 1 < width).then(|| at + 1),
            (y > 0).then(|| at - width),
            (y + 1 < height).then(|| at + width),
        ]
        .into_iter()
        .flatten()
    };
    let mut waiting = 0_usize;
    for at in 0..labels.len() {
        if labels[at] != Label::Unknown {
            distance[at] = 0;
            // Only seeds beside an unknown pixel can grow.
            if beside(at).any(|next| labels[next] == Label::Unknown) {
                buckets[0].push(at as u32);
                waiting += 1;
            }
        }
    }
    let mut reached = 0_u32;
    while waiting > 0 {
        let bucket = reached as usize % buckets.len();
        // A step costs at least 1, so nothing is added to the bucket that is being emptied.
        for at in std::mem::take(&mut buckets[bucket]) {
            waiting -= 1;
            let at = at as usize;
            if distance[at] != reached {
                continue;
            }
            let label = labels[at];
            for next in beside(at) {
                let step = cost(label, at, next).clamp(1, MAX_COST);
                let there = reached + u32::from(step);
                if there < distance[next] {
                    distance[next] = there;
                    labels[next] = label;
                    buckets[there as usize % (usize::from(MAX_COST) + 1)].push(next as u32);
                    waiting += 1;
                }
            }
        }
        reached += 1;
    }
}
