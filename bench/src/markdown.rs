//! Markdown tables with aligned columns.

use std::fmt;

/// A table: names in the first column, figures in all others.
pub struct Table {
    /// The first row is the head.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(head: Vec<String>) -> Self {
        Self { rows: vec![head] }
    }

    /// Adds a row with as many cells as the head.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.rows[0].len(), "a row has as many cells as the head");
        self.rows.push(row);
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        (0..self.rows[0].len()).map(|column| width(column).unwrap_or(0)).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(f, "| {cell:width$} |")?,
                    _ => write!(f, " {cell:>width$} |")?,
                }
            }
            writeln!(f)?;
            if index == 0 {
                write!(f, "|{:-<1$}|", "", widths[0] + 2)?;
                for width in &widths[1..] {
                    write!(f, "{:-<1$}:|", "", width + 1)?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_aligned_left_and_figures_right() {
        let cells = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let mut table = Table::new(cells(["subject", "ns"]));
        assert!(table.is_empty());
        table.push(cells(["floor", "100.5"]));
        let lines = ["| subject |    ns |", "|---------|------:|", "| floor   | 100.5 |", ""];
        assert_eq!(table.to_string(), lines.join("\n"));
    }
}
