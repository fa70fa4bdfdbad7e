//! Text tables.

use std::fmt::Write;

/// Aligns rows under a header; each column is as wide as its widest cell.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).fold(title.chars().count(), usize::max)
        })
        .collect();
    let header = header.iter().map(|title| (*title).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&header).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "-5".to_owned()], vec!["édith".into(), "20".into()]];
        assert_eq!(table(&["who", "credits"], &rows), "who    credits\na      -5\nédith  20\n");
    }
}
