//! Clears what a net suspects far from every subject.
//!
//! A net leaves traces of its doubt all over the background, which show as gray haze and specks on white. A trace that
//! continues a subject may be hair, so it stays; any other becomes fully transparent.

use std::ops::Range;

/// Below this, a cell neither belongs to a trace nor continues one: it is too faint to see.
const LEAST: f32 = 5.0 / 255.0;
/// A trace that reaches this somewhere is a subject.
const PEAK: f32 = 64.0 / 255.0;

/// Cells of a row, one beside the other, each of at least [`LEAST`].
struct Run {
    columns: Range<usize>,
    /// An earlier run of the same trace, or its own index.
    parent: usize,
    /// Whether it reaches [`PEAK`], or for the first run of a trace, whether any of the trace does.
    is_subject: bool,
}

/// Sets the cells to 0 that are not connected to a cell of at least [`PEAK`]. `map` holds alpha, 0..=1, row by row of `columns`.
pub(super) fn clear_traces(map: &mut [f32], columns: usize) {
    let mut runs = Vec::new();
    // The index of the first run of each row, and of the first after the last row.
    let mut rows = vec![0];
    for row in map.chunks_exact(columns) {
        let first = runs.len();
        let above = rows.iter().rev().nth(1).copied().unwrap_or(first)..first;
        add_runs(&mut runs, row);
        join_rows(&mut runs, above, first);
        rows.push(runs.len());
    }
    for index in 0..runs.len() {
        let first = first_of(&mut runs, index);
        runs[index].is_subject = runs[first].is_subject;
    }
    let mut stays = vec![false; columns];
    for (y, row) in map.chunks_exact_mut(columns).enumerate() {
        stays.fill(false);
        // The cells around a subject stay, too, for a soft edge.
        let near = rows[y.saturating_sub(1)]..rows[(y + 2).min(rows.len() - 1)];
        for run in runs[near].iter().filter(|run| run.is_subject) {
            let Range { start, end } = run.columns;
            stays[start.saturating_sub(1)..(end + 1).min(columns)].fill(true);
        }
        for (alpha, stays) in row.iter_mut().zip(&stays) {
            if !stays {
                *alpha = 0.0;
            }
        }
    }
}

fn add_runs(runs: &mut Vec<Run>, row: &[f32]) {
    let mut from = 0;
    while let Some(start) = row[from..].iter().position(|alpha| *alpha >= LEAST) {
        let start = from + start;
        let length = row[start..].iter().position(|alpha| *alpha < LEAST);
        let end = length.map_or(row.len(), |length| start + length);
        let is_subject = row[start..end].iter().any(|alpha| *alpha >= PEAK);
        runs.push(Run { columns: start..end, parent: runs.len(), is_subject });
        from = end;
    }
}

/// Joins the runs from `first` on, those of one row, with the runs of the row above that they touch.
fn join_rows(runs: &mut [Run], above: Range<usize>, first: usize) {
    let mut next = above.start;
    for index in first..runs.len() {
        let Range { start, end } = runs[index].columns;
        // Diagonal neighbors touch.
        while next < above.end && runs[next].columns.end < start {
            next += 1;
        }
        let touching = (next..above.end).take_while(|other| runs[*other].columns.start <= end);
        for other in touching.collect::<Vec<_>>() {
            let (own, other) = (first_of(runs, index), first_of(runs, other));
            let (earlier, later) = (own.min(other), own.max(other));
            runs[earlier].is_subject |= runs[later].is_subject;
            runs[later].parent = earlier;
        }
    }
}

/// Returns the first run of the trace that a run belongs to.
fn first_of(runs: &mut [Run], mut index: usize) -> usize {
    while runs[index].parent != index {
        let next = runs[index].parent;
        runs[index].parent = runs[next].parent;
        index = next;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleared(rows: &[[f32; 8]]) -> Vec<[f32; 8]> {
        let mut map = rows.concat();
        clear_traces(&mut map, 8);
        map.as_chunks().0.to_vec()
    }

    #[test]
    fn a_trace_far_from_the_subject_is_cleared() {
        let before = [
            [0.9, 0.9, 0.01, 0.01, 0.0, 0.2, 0.1, 0.0],
            [0.9, 0.9, 0.01, 0.01, 0.0, 0.1, 0.2, 0.0],
        ];
        let after = [0.9, 0.9, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(cleared(&before), [after; 2]);
    }

    /// The same, cell by cell.
    fn cleared_slowly(map: &[f32], columns: usize) -> Vec<f32> {
        let rows = map.len() / columns;
        let around = |at: usize| {
            let (x, y) = (at % columns, at / columns);
            let rows = y.saturating_sub(1)..(y + 2).min(rows);
            rows.flat_map(move |y| {
                (x.saturating_sub(1)..(x + 2).min(columns)).map(move |x| y * columns + x)
            })
        };
        let mut reached: Vec<_> = map.iter().map(|alpha| *alpha >= PEAK).collect();
        let mut next: Vec<_> = (0..map.len()).filter(|at| reached[*at]).collect();
        while let Some(at) = next.pop() {
            for near in around(at) {
                if !reached[near] && map[near] >= LEAST {
                    reached[near] = true;
                    next.push(near);
                }
            }
        }
        let stays = |at| around(at).any(|near| reached[near]);
        map.iter().enumerate().map(|(at, alpha)| if stays(at) { *alpha } else { 0.0 }).collect()
    }

    #[test]
    fn random_maps_are_cleared_as_cell_by_cell() {
        let mut state = 7_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for (rows, columns, sparse) in [(40, 60, 3), (60, 40, 2), (9, 1, 2), (1, 9, 2), (50, 50, 4)]
        {
            let map: Vec<_> = (0..rows * columns)
                .map(|_| match random() % (sparse + 8) {
                    0 => 0.5,
                    1..4 => 0.1,
                    _ => 0.01,
                })
                .collect();
            let mut cleared = map.clone();
            clear_traces(&mut cleared, columns);
            assert_eq!(cleared, cleared_slowly(&map, columns), "{rows} x {columns}");
            assert_ne!(cleared, map);
        }
    }

    #[test]
    fn hair_and_separate_subjects_stay() {
        let hair = [0.9, 0.1, 0.05, 0.0, 0.0, 0.1, 0.3, 0.1];
        let corner = [0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(cleared(&[hair, corner]), [hair, corner]);
    }
}
