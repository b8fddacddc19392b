//! What a user probably meant: the known name nearest to the one written.

/// Names, joined for a hint.
pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The name that was probably meant: the nearest by edit distance, if it is near enough to be a slip.
pub(super) fn nearest<'n>(written: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let most = (written.chars().count() / 3).clamp(1, 3);
    let written = written.to_lowercase();
    known
        .map(|name| (distance(&written, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many characters must be inserted, removed or replaced to make one text the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (left_count, left_character) in left.chars().enumerate() {
        let mut diagonal = left_count;
        let mut previous = left_count + 1;
        for (right_character, cell) in right.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(left_character != *right_character);
            diagonal = *cell;
            previous = replaced.min(previous + 1).min(diagonal + 1);
            *cell = previous;
        }
        if let Some(first) = row.first_mut() {
            *first = left_count + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
