//! Tables of plain text: columns padded to their widest cell, two spaces apart, no frames.
//!
//! Such tables read well without colour, go through `awk` and `column`, and differ little when one cell changes.

/// Lines up rows under a header. Trailing blanks are left out.
pub(crate) fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
            let title = header.get(column).map_or(0, |title| width(title));
            cells.fold(title, usize::max)
        })
        .collect();
    let mut text = line(header.iter().copied(), &widths);
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str), &widths));
    }
    text
}

fn line<'c>(cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
    let mut text = String::new();
    for (cell, wide) in cells.zip(widths) {
        text.push_str(cell);
        text.push_str(&" ".repeat(wide.saturating_sub(width(cell)) + 2));
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

/// Characters, not bytes: the names we show have no wide ones.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_blanks() {
        let rows = [
            vec!["a".to_owned(), "long cell".to_owned(), String::new()],
            vec!["bb".to_owned(), "x".to_owned(), "end".to_owned()],
        ];
        assert_eq!(
            render(&["N", "TEXT", "LAST"], &rows),
            "N   TEXT       LAST\na   long cell\nbb  x          end\n"
        );
    }
}
