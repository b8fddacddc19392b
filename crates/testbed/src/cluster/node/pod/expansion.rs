//! `$(NAME)` in commands, arguments and values.
//!
//! As Kubernetes has it: a name that is not known stays as it is written, and `$$` is a dollar sign that expands nothing.

use std::collections::BTreeMap;

/// Replaces every name that is known.
pub(super) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        result.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match variables.get(name) {
                Some(value) => result.push_str(value),
                None => result.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            result.push('$');
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::expand;

    #[test]
    fn known_names_are_replaced_and_everything_else_stays() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        for (text, expected) in [
            ("plain", "plain"),
            ("$(A)-$(A)", "1-1"),
            ("$(B)", "$(A)"),
            ("$(C)", "$(C)"),
            ("$$(A)", "$(A)"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
        ] {
            assert_eq!(expand(text, &variables), expected, "{text}");
        }
    }
}
