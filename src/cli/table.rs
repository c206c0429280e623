//! Rows of columns for a person, as wide as the terminal.

use super::text::{cut, line};

/// The width of what is no terminal, or hides its width.
const USUAL_WIDTH: usize = 80;
/// Narrower than this, a table breaks over lines rather than saying nothing.
const LEAST_WIDTH: usize = 60;

/// A column and what is known of its width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    /// Columns of the screen up to which it grows.
    most: usize,
    /// What it has grown to.
    width: usize,
    is_number: bool,
}

impl Column {
    /// A text, cut off beyond `most` columns of the screen.
    pub(super) fn text(name: &'static str, most: usize) -> Column {
        Column { name, most, width: name.len(), is_number: false }
    }

    /// A number, flush right and never cut off.
    pub(super) fn number(name: &'static str) -> Column {
        Column { name, most: usize::MAX, width: name.len(), is_number: true }
    }
}

/// A table that is printed as its rows come: a column grows when one needs it to, and the last has
/// what the others leave.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    columns: [Column; N],
    width: usize,
    has_header: bool,
}

impl<const N: usize> Table<N> {
    /// An empty table for standard output.
    pub(super) fn new(columns: [Column; N]) -> Table<N> {
        let terminal = terminal_size::terminal_size_of(std::io::stdout());
        let width = terminal.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        Table { columns, width: width.max(LEAST_WIDTH), has_header: false }
    }

    /// These rows as lines, below the header if they are the first. The cells are anybody's texts.
    pub(super) fn rows(&mut self, rows: &[[String; N]]) -> String {
        let rows: Vec<[String; N]> =
            rows.iter().map(|row| row.each_ref().map(|cell| line(cell))).collect();
        for (at, column) in self.columns.iter_mut().enumerate() {
            let needed = rows.iter().map(|row| cut(&row[at], column.most).1).max();
            column.width = column.width.max(needed.unwrap_or(0));
        }
        let mut lines = String::new();
        if !std::mem::replace(&mut self.has_header, true) {
            self.row(&self.columns.map(|column| column.name.to_owned()), &mut lines);
        }
        for row in &rows {
            self.row(row, &mut lines);
        }
        lines
    }

    fn row(&self, row: &[String; N], lines: &mut String) {
        let start = lines.len();
        let mut left = self.width;
        for (at, (column, cell)) in self.columns.iter().zip(row).enumerate() {
            let is_last = at + 1 == N;
            let width = if is_last { left } else { column.width.min(left) };
            let (cell, used) = cut(cell, width);
            let pad = if is_last { 0 } else { width - used };
            let (before, after) = if column.is_number { (pad, 0) } else { (0, pad) };
            let gap = if is_last { 0 } else { 2 };
            lines.push_str(&format!("{:before$}{cell}{:after$}{:gap$}", "", "", ""));
            left = left.saturating_sub(width + gap);
        }
        lines.truncate(start + lines[start..].trim_end().len());
        lines.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<3> {
        let columns = [Column::number("N"), Column::text("WHO", 6), Column::text("TEXT", 99)];
        Table { columns, width: 20, has_header: false }
    }

    fn row(cells: [&str; 3]) -> [String; 3] {
        cells.map(str::to_owned)
    }

    #[test]
    fn columns_grow_to_their_bound_and_lines_fit() {
        let mut table = table();
        assert_eq!(table.rows(&[]), "N  WHO  TEXT\n");
        let rows = [row(["8", "你好", "a\nb"]), row(["12", "somebody", "hello there, you"])];
        assert_eq!(table.rows(&rows), " 8  你好    a b\n12  someb…  hello t…\n");
        assert_eq!(table.rows(&[row(["100", "", "\u{1b}[2J"])]), "100          \u{fffd}[2J\n");
    }

    #[test]
    fn a_row_too_wide_for_its_terminal_is_cut() {
        let mut table = table();
        let lines = table.rows(&[row([&"9".repeat(30), "a", "b"])]);
        assert!(lines.lines().all(|line| line.chars().count() <= 20), "{lines}");
    }
}
