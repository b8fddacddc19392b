//! Cuts a YAML stream into documents by its markers, without parsing it.
//!
//! A marker at the beginning of a line ends whatever came before, even inside a block of text: so says YAML, and so one
//! broken document cannot swallow the next.

/// One document of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'t> {
    /// The text, including its leading marker.
    pub(super) text: &'t str,
    /// How many lines of the stream stand before it.
    pub(super) lines_before: u64,
}

pub(super) fn split(stream: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut start = 0;
    let mut start_line = 0;
    let mut offset = 0;
    // Directives and comments before a marker belong to the document that the marker begins.
    let mut has_content = false;
    for (number, line) in (0_u64..).zip(stream.split_inclusive('\n')) {
        let end = offset + line.len();
        if is_marker(line, "---") {
            if has_content {
                chunks.push((start..offset, start_line));
                (start, start_line) = (offset, number);
            }
            has_content = true;
        } else if is_marker(line, "...") {
            if has_content {
                chunks.push((start..end, start_line));
            }
            (start, start_line) = (end, number + 1);
            has_content = false;
        } else if !is_blank(line) && !line.starts_with('%') {
            has_content = true;
        }
        offset = end;
    }
    chunks.push((start..offset, start_line));
    let chunk = |(range, lines_before)| Chunk {
        text: stream.get(range).unwrap_or_default(),
        lines_before,
    };
    chunks
        .into_iter()
        .map(chunk)
        .filter(|chunk| !chunk.text.lines().all(is_blank_or_marker))
        .collect()
}

/// A marker stands alone or is followed by white space.
fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn is_blank_or_marker(line: &str) -> bool {
    let rest = if is_marker(line, "---") || is_marker(line, "...") {
        line.get(3..).unwrap_or_default()
    } else {
        line
    };
    is_blank(rest)
}
