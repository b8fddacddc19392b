//! Checks one value against one limit of its place.
//!
//! Called by the walk for values whose type fits; a value of another type passes, because that has been said already.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Code,
    report::Report,
    shape::Check,
    suggest::{list, nearest},
};

pub(super) fn check(check: Check, value: &Value, report: &mut Report<'_>) {
    match (check, value) {
        (Check::Length(least, most), Value::String(text)) => length(text, least, most, report),
        // Too short is said by the length alone.
        (Check::Format(format), Value::String(text)) if !text.is_empty() && !(format.is_valid)(text) => {
            report.error(Code::BadFormat, format!("{text:?} is not {}", format.noun), format.hint);
        }
        (Check::Range(least, most), Value::Number(number)) => range(number, least, most, report),
        (Check::OneOf(allowed), Value::String(text)) if !allowed.contains(&text.as_str()) => {
            not_allowed(text, allowed.iter().copied(), report);
        }
        (Check::OneOfNumbers(allowed), Value::Number(number))
            if number.as_i64().is_some_and(|number| !allowed.contains(&number)) =>
        {
            let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            let hint = format!("allowed: {}", names.join(", "));
            report.error(
                Code::NotAllowed,
                format!("{number} is not one of the allowed values"),
                hint,
            );
        }
        (Check::Items(least, most), Value::Array(items)) => count(items.len(), least, most, report),
        (Check::Entries(most), Value::Object(entries)) if entries.len() > most => {
            let message = format!("has {} entries, at most {most} are allowed", entries.len());
            report.error(Code::WrongCount, message, format!("remove {}", entries.len() - most));
        }
        (Check::Keys(format), Value::Object(entries)) => {
            for key in entries.keys().filter(|key| !(format.is_valid)(key)) {
                let message = format!("{key:?} is not {}", format.noun);
                report.error_at(&[key.as_str().into()], Code::BadFormat, message, format.hint);
            }
        }
        (Check::Unique, Value::Array(items)) => unique(items.iter().map(Some), "", report),
        (Check::UniqueBy(field), Value::Array(items)) => {
            unique(items.iter().map(|item| item.get(field)), field, report);
        }
        _ => {}
    }
}

fn length(text: &str, least: usize, most: usize, report: &mut Report<'_>) {
    let length = text.chars().count();
    if length < least {
        let message = if length == 0 {
            "is empty".to_owned()
        } else {
            format!("has {length} characters")
        };
        report.error(
            Code::WrongLength,
            message,
            format!("write at least {least} character{}", plural(least)),
        );
    } else if length > most {
        let message = format!("has {length} characters, at most {most} are allowed");
        report.error(Code::WrongLength, message, format!("shorten it by {}", length - most));
    }
}

fn range(number: &serde_json::Number, least: i64, most: i64, report: &mut Report<'_>) {
    if number.as_i64().is_some_and(|number| number < least || number > most) {
        let hint = if most == i64::MAX {
            format!("use a whole number of at least {least}")
        } else {
            format!("use a whole number from {least} to {most}")
        };
        report.error(Code::OutOfRange, format!("{number} is out of range"), hint);
    }
}

fn count(count: usize, least: usize, most: usize, report: &mut Report<'_>) {
    if count < least {
        let message = if count == 0 {
            "is an empty list".to_owned()
        } else {
            format!("has {count} items")
        };
        report.error(
            Code::WrongCount,
            message,
            format!("give at least {least} item{}", plural(least)),
        );
    } else if count > most {
        let message = format!("has {count} items, at most {most} are allowed");
        report.error(
            Code::WrongCount,
            message,
            "remove some, or spread them over several objects",
        );
    }
}

/// Reports each item whose key an earlier item has. Items without a key are equal to none.
fn unique<'v>(keys: impl Iterator<Item = Option<&'v Value>>, field: &str, report: &mut Report<'_>) {
    let mut seen = HashSet::new();
    for (index, key) in keys.enumerate() {
        let Some(key) = key else { continue };
        if !seen.insert(key) {
            let what = if field.is_empty() {
                format!("{key} is")
            } else {
                format!("{field} {key} is")
            };
            let message = format!("{what} in the list twice");
            let below = [index.into(), field.into()];
            let place = if field.is_empty() { &below[..1] } else { &below[..] };
            report.error_at(place, Code::Duplicate, message, "remove one of the two or change it");
        }
    }
}

pub(super) fn not_allowed<'n>(text: &str, allowed: impl Iterator<Item = &'n str> + Clone, report: &mut Report<'_>) {
    let mut hint = match nearest(text, allowed.clone()) {
        Some(known) => format!("did you mean {known:?}? "),
        None => String::new(),
    };
    hint.push_str("allowed: ");
    hint.push_str(&list(allowed));
    report.error(
        Code::NotAllowed,
        format!("{text:?} is not one of the allowed values"),
        hint,
    );
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
