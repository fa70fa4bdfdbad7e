//! The levels of a picture: how much of the range from black to white it uses.

use ndarray::{Array4, ArrayView4, Axis, s};

use crate::framing::Frame;

/// The widest range of samples that counts as low contrast. Ordinary photos use nearly all of 255.
const LOW_CONTRAST: usize = 128;
/// The share of the samples at each end that may lie outside the range.
const OUTLIERS: f32 = 0.005;
/// The narrowest range that is stretched; a narrower one is noise, or nothing.
const LEAST: usize = 4;

/// Stretches the samples of a picture of low contrast linearly to 0..=255, all channels alike, which keeps its hues. `None`
/// if its contrast is not low, or it shows nothing. `input` is `[batch, row, column, channel]`; outside of `frame` it has a
/// border, which stays as it is.
pub fn stretched(input: &Array4<u8>, frame: &Frame) -> Option<Array4<u8>> {
    let [rows, columns] = [&frame.y, &frame.x].map(|side| side.start as usize..side.end as usize);
    let inside = s![.., rows, columns, ..];
    let picture = input.slice(&inside);
    let counts = counts_of(&picture);
    let outliers = (picture.len() as f32 * OUTLIERS) as usize;
    let beyond = |counts: &mut dyn Iterator<Item = &usize>| {
        counts
            .scan(0, |sum, count| {
                *sum += count;
                Some(*sum)
            })
            .position(|sum| sum > outliers)
    };
    let low = beyond(&mut counts.iter())?;
    let high = 255 - beyond(&mut counts.iter().rev())?;
    let range = high.checked_sub(low)?;
    if !(LEAST..=LOW_CONTRAST).contains(&range) {
        return None;
    }
    let levels: Vec<u8> = (0..256_usize)
        .map(|level| (level.saturating_sub(low).min(range) * 255 / range) as u8)
        .collect();
    let mut stretched = input.clone();
    stretched.slice_mut(&inside).mapv_inplace(|sample| levels[usize::from(sample)]);
    Some(stretched)
}

/// Returns how many samples have each level.
fn counts_of(picture: &ArrayView4<'_, u8>) -> [usize; 256] {
    // Equal samples follow each other, and adding to one count twice in a row takes a processor several times as long.
    let mut tables = [[0_usize; 256]; 4];
    for row in picture.axis_iter(Axis(1)) {
        let row = row.as_standard_layout();
        let samples = row.as_slice().unwrap_or_default();
        for four in samples.chunks(4) {
            for (table, sample) in tables.iter_mut().zip(four) {
                table[usize::from(*sample)] += 1;
            }
        }
    }
    std::array::from_fn(|level| tables.iter().map(|table| table[level]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(sample: impl Fn(usize) -> u8) -> Array4<u8> {
        Array4::from_shape_fn((1, 100, 100, 3), |(_, y, x, _)| sample(y * 100 + x))
    }

    fn stretched(picture: &Array4<u8>) -> Option<Array4<u8>> {
        let (_, rows, columns, _) = picture.dim();
        let size = (columns as u32, rows as u32);
        super::stretched(picture, &Frame { size, x: 0..size.0, y: 0..size.1 })
    }

    #[test]
    fn a_border_neither_counts_nor_changes() {
        let faint = |at: usize| 100 + (at % 21) as u8;
        let framed = picture(|at| if at < 5000 { faint(at) } else { 0 });
        let frame = Frame { size: (100, 100), x: 0..100, y: 0..50 };
        let found = super::stretched(&framed, &frame).unwrap();
        assert_eq!(found.slice(s![.., ..50, .., ..]).iter().max(), Some(&255));
        assert_eq!(found[[0, 0, 10, 0]], 127);
        assert!(found.slice(s![.., 50.., .., ..]).iter().all(|sample| *sample == 0));
    }

    #[test]
    fn a_narrow_range_is_stretched_and_a_wide_one_is_not() {
        let faint = picture(|at| 100 + (at % 21) as u8);
        let found = stretched(&faint).unwrap();
        assert_eq!(found.iter().min(), Some(&0));
        assert_eq!(found.iter().max(), Some(&255));
        assert_eq!(found[[0, 0, 10, 0]], 127);
        assert_eq!(stretched(&picture(|at| (at % 200) as u8)), None);
    }

    #[test]
    fn a_few_bright_pixels_do_not_count_and_nothing_stays_nothing() {
        let dark = picture(|at| if at % 1000 == 0 { 255 } else { (at % 20) as u8 });
        assert_eq!(stretched(&dark).unwrap()[[0, 0, 19, 0]], 255);
        assert_eq!(stretched(&picture(|_| 77)), None);
        assert_eq!(stretched(&picture(|at| 77 + (at % 3) as u8)), None);
        assert_eq!(stretched(&Array4::zeros((1, 0, 0, 3))), None);
    }
}
