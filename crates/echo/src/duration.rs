//! Go's text form of durations, in which the contract writes delays.
//!
//! Called for query parameters. A negative duration is no wait at all, as in Go's sleep.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// The longest delay served; a longer one is not a duration here.
const LONGEST_NANOSECONDS: u128 = 24 * 3600 * 1_000_000_000;

/// Reads `300ms`, `1.5s`, `1h2m`, `0`; `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let (is_negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        total = total.checked_add(nanoseconds(number, scale(unit)?)?)?;
        rest = next;
    }
    if total > LONGEST_NANOSECONDS {
        return None;
    }
    if is_negative {
        Some(Duration::ZERO)
    } else {
        u64::try_from(total).ok().map(Duration::from_nanos)
    }
}

fn scale(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        _ => return None,
    })
}

fn nanoseconds(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u128>().ok()?
    };
    let mut total = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.chars() {
        place /= 10;
        total = total.checked_add(u128::from(digit.to_digit(10)?) * place)?;
    }
    Some(total)
}
