//! Clears what a net suspects far from every subject.
//!
//! A net leaves traces of its doubt all over the background, which show as gray haze and specks on white. A trace that
//! continues a subject may be hair, so it stays; any other becomes fully transparent.

/// Below this, a cell neither belongs to a trace nor continues one: it is too faint to see.
const LEAST: f32 = 5.0 / 255.0;
/// A trace that reaches this somewhere is a subject.
const PEAK: f32 = 64.0 / 255.0;

/// Sets the cells to 0 that are not connected to a cell of at least [`PEAK`]. `map` holds alpha, 0..=1, row by row of `columns`.
pub(super) fn clear_traces(map: &mut [f32], columns: usize) {
    let rows = map.len() / columns;
    // The cells around a subject stay, too, for a soft edge.
    let (mut stays, mut seen) = (vec![false; map.len()], vec![false; map.len()]);
    let mut next = Vec::new();
    for start in 0..map.len() {
        if seen[start] || map[start] < PEAK {
            continue;
        }
        seen[start] = true;
        next.push(start);
        while let Some(at) = next.pop() {
            let (x, y) = (at % columns, at / columns);
            for y in y.saturating_sub(1)..(y + 2).min(rows) {
                for x in x.saturating_sub(1)..(x + 2).min(columns) {
                    let near = y * columns + x;
                    stays[near] = true;
                    if !seen[near] && map[near] >= LEAST {
                        seen[near] = true;
                        next.push(near);
                    }
                }
            }
        }
    }
    for (alpha, stays) in map.iter_mut().zip(stays) {
        if !stays {
            *alpha = 0.0;
        }
    }
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

    #[test]
    fn hair_and_separate_subjects_stay() {
        let hair = [0.9, 0.1, 0.05, 0.0, 0.0, 0.1, 0.3, 0.1];
        let corner = [0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(cleared(&[hair, corner]), [hair, corner]);
    }
}
