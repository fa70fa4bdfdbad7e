//! Amounts as people read them.

/// Currencies that have no smaller unit.
const WHOLE: [&str; 16] = [
    "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv",
    "xaf", "xof", "xpf",
];

/// `1234` of `usd` is `$12.34`.
pub fn text(amount: i64, currency: &str) -> String {
    let number = if WHOLE.contains(&currency) {
        amount.to_string()
    } else {
        format!("{}.{:02}", amount / 100, amount % 100)
    };
    match currency {
        "usd" => format!("${number}"),
        "eur" => format!("€{number}"),
        "gbp" => format!("£{number}"),
        "jpy" => format!("¥{number}"),
        other => format!("{number} {}", other.to_uppercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn amounts_are_written_in_their_currency() {
        assert_eq!(text(200, "usd"), "$2.00");
        assert_eq!(text(123_405, "eur"), "€1234.05");
        assert_eq!(text(500, "jpy"), "¥500");
        assert_eq!(text(7, "chf"), "0.07 CHF");
    }
}
