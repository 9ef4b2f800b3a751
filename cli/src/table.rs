//! Tables of results: columns without lines between them, a style a row.

use std::io::{self, Write};
use std::ops::Range;

use anstyle::Style;
use comfy_table::{CellAlignment, Table, presets};

use crate::output::styled;

/// Prints a table: a bold line of headings, then the rows, each in its style. The columns in `right`
/// have their text to the right. A cell may have several lines.
pub(crate) fn print(
    out: &mut impl Write,
    headings: &[&str],
    right: Range<usize>,
    rows: impl Iterator<Item = (Vec<String>, Style)>,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings);
    let mut styles = vec![Style::new().bold()];
    for (cells, style) in rows {
        let lines = cells.iter().map(|cell| cell.lines().count()).max().unwrap_or(1);
        styles.extend(std::iter::repeat_n(style, lines.max(1)));
        table.add_row(cells);
    }
    for at in right {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (line, style) in table.lines().zip(styles) {
        // What stands below other lines of its cell stays there.
        let text = line.strip_prefix(' ').unwrap_or(&line).trim_end();
        writeln!(out, "{}", styled(style, text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_several_lines_keeps_its_column_and_its_style() {
        let row = |cells: [&str; 3]| (cells.map(str::to_owned).to_vec(), Style::new());
        let rows = [row(["a", "5", "one\ntwo"]), row(["long", "10", "three"])];
        let mut out = Vec::new();
        print(&mut out, &["name", "n", "why"], 1..2, rows.into_iter()).expect("memory takes it");
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        let expected = "name   n  why\na      5  one\n          two\nlong  10  three\n";
        assert_eq!(String::from_utf8(text).expect("it is text"), expected);
    }
}
