//! Numbers as people read them: three digits that count, thousands apart.

/// A value with as many decimals as its size deserves.
pub(super) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    grouped(&format!("{value:.decimals$}"))
}

/// A value with the least and the greatest of its rounds, if there were several.
pub(super) fn with_spread(value: f64, (least, greatest): (f64, f64)) -> String {
    if least.total_cmp(&greatest).is_eq() {
        short(value)
    } else {
        format!("{} ({}–{})", short(value), short(least), short(greatest))
    }
}

fn grouped(text: &str) -> String {
    let (whole, rest) = text.find('.').map_or((text, ""), |point| text.split_at(point));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{short, with_spread};

    #[test]
    fn numbers_have_three_digits_that_count() {
        let cases = [
            (0.123_4, "0.12"),
            (17.56, "17.6"),
            (999.4, "999"),
            (63_612.7, "63,613"),
            (-1_234.0, "-1,234"),
            (-123.0, "-123"),
            (0.0, "0.00"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn a_spread_is_shown_only_when_there_is_one() {
        assert_eq!(with_spread(2.0, (1.0, 3.0)), "2.00 (1.00–3.00)");
        assert_eq!(with_spread(2.0, (2.0, 2.0)), "2.00");
    }
}
