//! The packs of credits on sale.

/// A pack of credits on sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pack {
    /// 1, 2 or 3; part of the checkout URL.
    pub number: u8,
    pub credits: i32,
    pub amount_cents: i64,
    /// ISO 4217, lower case.
    pub currency: &'static str,
    /// Its label on the price list.
    pub label: &'static str,
    /// An extra line on the price list.
    pub note: Option<&'static str>,
}

pub const PACKS: [Pack; 3] = [
    Pack {
        number: 1,
        credits: 20,
        amount_cents: 200,
        currency: "usd",
        label: "Cheapest",
        note: None,
    },
    Pack {
        number: 2,
        credits: 55,
        amount_cents: 500,
        currency: "usd",
        label: "Most popular",
        note: Some("10% More Value"),
    },
    Pack {
        number: 3,
        credits: 180,
        amount_cents: 1500,
        currency: "usd",
        label: "Best Value",
        note: Some("20% More Value"),
    },
];
