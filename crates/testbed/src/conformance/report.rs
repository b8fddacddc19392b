//! The report in the repository, which changes only if what it says does.

use std::{fs, path::Path};

use anyhow::Context;

/// Puts a report of a whole run into the repository, unless one is there that differs in its date only. Says what was done.
pub(super) fn publish(new: &Path, place: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(new).with_context(|| format!("the suite wrote no {}", new.display()))?;
    let known = fs::read_to_string(place).unwrap_or_default();
    if without_date(&known).eq(without_date(&text)) {
        return Ok(format!("{}, which says the same", place.display()));
    }
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(place, text).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(format!("{}, written anew", place.display()))
}

fn without_date(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("date:"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::publish;

    #[test]
    fn a_report_is_replaced_when_it_says_something_else_and_not_for_its_date() {
        let folder = tempfile::tempdir().unwrap();
        let (new, place) = (folder.path().join("new"), folder.path().join("reports/known"));
        let publish = |text: &str| {
            fs::write(&new, text).unwrap();
            publish(&new, &place).unwrap();
            fs::read_to_string(&place).unwrap()
        };
        assert_eq!(publish("date: 1\nPassed: 1\n"), "date: 1\nPassed: 1\n");
        assert_eq!(publish("date: 2\nPassed: 1\n"), "date: 1\nPassed: 1\n");
        assert_eq!(publish("date: 3\nPassed: 2\n"), "date: 3\nPassed: 2\n");
    }
}
