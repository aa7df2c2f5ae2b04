//! Aligned text: tables with a header, and blocks of keys and values.

use super::screen::clean;

/// A table: columns separated by two spaces, nothing behind the last.
pub fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let header = header.map(str::to_owned);
    columns(core::iter::once(header).chain(rows).map(Vec::from))
}

/// Rows of which the first is the header, and which may have any number of columns.
pub fn columns(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let cells = |row: Vec<String>| row.into_iter().map(cell).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(cells).collect();
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or(0)];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &Vec<String>| {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Keys and values, one a line. An empty value is `<none>`.
pub fn block<'a>(lines: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let lines: Vec<(&str, String)> = lines.into_iter().collect();
    let width = lines
        .iter()
        .map(|(key, _)| key.chars().count())
        .max()
        .unwrap_or(0);
    let line = |(key, value): &(&str, String)| {
        let value = cell(value.clone());
        let value = if value.is_empty() { "<none>" } else { &value };
        format!("{key:width$} = {value}")
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One line of harmless text.
fn cell(text: String) -> String {
    clean(&text).replace(['\n', '\t'], " ")
}

/// The first eight digits of an id, or all of it.
pub fn short(id: &str, verbose: bool) -> String {
    if verbose {
        id.to_owned()
    } else {
        id.chars().take(8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_width_is_that_of_widest_cell() {
        let rows = [["a", "running"], ["long-one", "dead"]].map(|row| row.map(str::to_owned));
        let shown = table(["ID", "Status"], rows);
        assert_eq!(shown, "ID        Status\na         running\nlong-one  dead");
        let hostile = table(["ID"], [["a\nb\x1b".to_owned()]]);
        assert_eq!(hostile, "ID\na b\u{fffd}");
    }

    #[test]
    fn keys_are_aligned() {
        let shown = block([("ID", "web".to_owned()), ("Priority", String::new())]);
        assert_eq!(shown, "ID       = web\nPriority = <none>");
    }
}
