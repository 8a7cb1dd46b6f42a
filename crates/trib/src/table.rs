//! Columns for people.

use std::fmt;

/// Rows of equal length. Every column is as wide as its widest cell. Columns of numbers, in which
/// "-" stands for none, are flush right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = T>) -> Self {
        Self { rows: vec![heads.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row, which has a cell for every head.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| on_one_line(cell.into())).collect();
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells);
    }

    fn column(&self, index: usize) -> (usize, bool) {
        let width = self.rows.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
        let cells = || self.rows[1..].iter().map(|row| row[index].as_str());
        let is_number = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
        (width, cells().any(is_number) && cells().all(|cell| cell == "-" || is_number(cell)))
    }
}

/// Makes a cell one line: a program may have any name, and no part of it may move the cursor.
fn on_one_line(cell: String) -> String {
    if cell.contains(char::is_control) { cell.replace(char::is_control, "\u{fffd}") } else { cell }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<(usize, bool)> = (0..self.rows[0].len()).map(|index| self.column(index)).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&columns).map(|(cell, &(width, right))| match right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let mut table = Table::new(["NODE", "SENT", "STATE"]);
        table.row(["leaf0", "7", "up"]);
        table.row(["x", "1234", "-"]);
        table.row(["y\u{1b}", "-", "-"]);
        assert_eq!(table.to_string(), "NODE   SENT  STATE\nleaf0     7  up\nx      1234  -\ny\u{fffd}        -  -\n");
    }
}
