//! Creates sessions from the parameters of `POST /v1/checkout/sessions`, with Stripe's validation.

use std::collections::BTreeMap;

use super::error::StripeError;
use super::form::Form;
use super::id::new_id;
use super::session::{Item, Session, Status};

/// The supported parameters: those that Retouch sends.
const PARAMETERS: [&str; 11] = [
    "adaptive_pricing",
    "cancel_url",
    "client_reference_id",
    "customer_email",
    "expires_at",
    "line_items",
    "metadata",
    "mode",
    "payment_intent_data",
    "success_url",
    "ui_mode",
];
const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * MINUTE;
/// Stripe's maximum amount, 8 digits.
const MAX_AMOUNT: i64 = 99_999_999;

/// Validates the parameters and returns an open session.
pub fn create(form: &Form, now: i64) -> Result<Session, StripeError> {
    if let Some(name) = form.names().find(|name| !PARAMETERS.contains(name)) {
        let error = StripeError::invalid(format!("Received unknown parameter: {name}"));
        return Err(error.with_code("parameter_unknown").with_param(name));
    }
    check(form, "mode", "payment")?;
    if form.text("ui_mode").is_some() {
        check(form, "ui_mode", "hosted_page")?;
    }
    let (currency, items) = items(form)?;
    let success_url = address(form, "success_url")?;
    Ok(Session {
        id: new_id("cs_test"),
        created: now,
        expires_at: expires_at(form, now)?,
        status: Status::Open,
        items,
        currency,
        has_adaptive_pricing: has_adaptive_pricing(form),
        success_url: Some(success_url.ok_or_else(|| StripeError::missing("success_url"))?),
        cancel_url: address(form, "cancel_url")?,
        client_reference_id: reference(form)?,
        metadata: metadata(form)?,
        intent_metadata: form.inner("payment_intent_data").map_or(Ok(BTreeMap::new()), metadata)?,
        customer_email: email(form)?,
        paid_by: None,
        payment: None,
    })
}

/// As at Stripe, the dashboard decides unless the request does; here, its setting is on.
fn has_adaptive_pricing(form: &Form) -> bool {
    form.inner("adaptive_pricing").and_then(|pricing| pricing.text("enabled")) != Some("false")
}

fn check(form: &Form, name: &str, supported: &str) -> Result<(), StripeError> {
    match form.text(name) {
        Some(value) if value == supported => Ok(()),
        Some(_) => {
            let message = format!("The stand-in supports only `{name}={supported}`.");
            Err(StripeError::invalid(message).with_param(name))
        }
        None => Err(StripeError::missing(name)),
    }
}

fn items(form: &Form) -> Result<(String, Vec<Item>), StripeError> {
    let entries = form.list("line_items").filter(|entries| !entries.is_empty());
    let entries = entries.ok_or_else(|| StripeError::missing("line_items"))?;
    let priced: Vec<_> =
        entries.iter().enumerate().map(|(at, entry)| item(entry, at)).collect::<Result<_, _>>()?;
    let currency = priced[0].0.clone();
    if priced.iter().any(|(other, _)| *other != currency) {
        return Err(StripeError::invalid("All line items must have the same currency."));
    }
    let items: Vec<_> = priced.into_iter().map(|(_, item)| item).collect();
    let total = items.iter().try_fold(0_i64, |sum, item| {
        item.unit_amount.checked_mul(item.quantity).and_then(|amount| sum.checked_add(amount))
    });
    match total {
        Some(1..=MAX_AMOUNT) => Ok((currency, items)),
        Some(0) => Err(StripeError::invalid("The total amount must be greater than zero.")
            .with_code("amount_too_small")),
        Some(_) | None => {
            Err(StripeError::invalid("The total amount is too large.")
                .with_code("amount_too_large"))
        }
    }
}

fn item(entry: &Form, at: usize) -> Result<(String, Item), StripeError> {
    let param = |name: &str| format!("line_items[{at}]{name}");
    let price = entry.inner("price_data").ok_or_else(|| {
        let message =
            "You must provide `price_data` for each line item (the stand-in has no stored prices).";
        StripeError::invalid(message).with_param(&param("[price_data]"))
    })?;
    let currency = price.text("currency").map(str::to_lowercase);
    let currency =
        currency.ok_or_else(|| StripeError::missing(&param("[price_data][currency]")))?;
    if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_lowercase()) {
        let message = format!("Invalid currency: {currency}");
        return Err(StripeError::invalid(message).with_param(&param("[price_data][currency]")));
    }
    let name = price.inner("product_data").and_then(|product| product.text("name"));
    let name =
        name.ok_or_else(|| StripeError::missing(&param("[price_data][product_data][name]")))?;
    let integer = |form: &Form, name: &str, param: &str, min: i64| {
        let number = form.integer(name, param)?.ok_or_else(|| StripeError::missing(param))?;
        let too_small =
            || StripeError::invalid(format!("{param} must be at least {min}")).with_param(param);
        (number >= min).then_some(number).ok_or_else(too_small)
    };
    let item = Item {
        name: name.to_owned(),
        unit_amount: integer(price, "unit_amount", &param("[price_data][unit_amount]"), 0)?,
        quantity: integer(entry, "quantity", &param("[quantity]"), 1)?,
    };
    Ok((currency, item))
}

fn expires_at(form: &Form, now: i64) -> Result<i64, StripeError> {
    let Some(at) = form.integer("expires_at", "expires_at")? else { return Ok(now + DAY) };
    // Five seconds of tolerance for clock differences.
    if at < now + 30 * MINUTE - 5 {
        let message = "The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation.";
        return Err(StripeError::invalid(message).with_param("expires_at"));
    }
    if at > now + DAY + 5 {
        let message =
            "The `expires_at` timestamp must be less than 24 hours from Checkout Session creation.";
        return Err(StripeError::invalid(message).with_param("expires_at"));
    }
    Ok(at)
}

fn address(form: &Form, name: &str) -> Result<Option<String>, StripeError> {
    let Some(text) = form.text(name) else { return Ok(None) };
    // The braces of the placeholder are not valid in a URL.
    let is_web = url::Url::parse(&text.replace("{CHECKOUT_SESSION_ID}", "id"))
        .is_ok_and(|address| matches!(address.scheme(), "http" | "https") && address.has_host());
    if is_web && text.is_ascii() && !text.contains(char::is_control) {
        return Ok(Some(text.to_owned()));
    }
    Err(StripeError::invalid("Not a valid URL").with_code("url_invalid").with_param(name))
}

fn reference(form: &Form) -> Result<Option<String>, StripeError> {
    let reference = form.text("client_reference_id");
    if reference.is_some_and(|text| text.chars().count() > 200) {
        let message = "Invalid string: client_reference_id must be at most 200 characters";
        return Err(StripeError::invalid(message).with_param("client_reference_id"));
    }
    Ok(reference.map(str::to_owned))
}

fn email(form: &Form) -> Result<Option<String>, StripeError> {
    let Some(text) = form.text("customer_email") else { return Ok(None) };
    if is_email(text) {
        return Ok(Some(text.to_owned()));
    }
    // Unlike Stripe, does not quote the address: messages end up in logs.
    let error = StripeError::invalid("Invalid email address").with_code("email_invalid");
    Err(error.with_param("customer_email"))
}

/// Returns true if `text` looks like an email address.
pub fn is_email(text: &str) -> bool {
    let mut parts = text.split('@');
    let (name, host, rest) = (parts.next(), parts.next(), parts.next());
    name.is_some_and(|name| !name.is_empty())
        && host
            .is_some_and(|host| !host.is_empty() && !host.starts_with('.') && !host.ends_with('.'))
        && rest.is_none()
        && text.len() <= 512
        && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

fn metadata(form: &Form) -> Result<BTreeMap<String, String>, StripeError> {
    let metadata = form.texts("metadata");
    let is_too_long =
        |(key, value): (&String, &String)| key.chars().count() > 40 || value.chars().count() > 500;
    if metadata.len() > 50 || metadata.iter().any(is_too_long) {
        let message = "Metadata can have up to 50 keys of up to 40 characters, with values of up to 500 characters.";
        return Err(StripeError::invalid(message).with_param("metadata"));
    }
    Ok(metadata)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const ITEM: &str = "line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=200\
        &line_items[0][price_data][product_data][name]=20+credits&line_items[0][quantity]=1";

    /// The body of a valid request, followed by `more`.
    pub fn body(more: &str) -> String {
        format!("mode=payment&{ITEM}&success_url=http://ui.test/r?s={{CHECKOUT_SESSION_ID}}{more}")
    }

    fn created(body: &str) -> Result<Session, StripeError> {
        create(&Form::parse(body.as_bytes())?, 1_000_000)
    }

    #[test]
    fn a_session_has_the_parameters_of_the_request() {
        let more = "&client_reference_id=u1&metadata[pack]=3&customer_email=a@b.c&cancel_url=http://ui.test/\
            &payment_intent_data[metadata][order]=o1&ui_mode=hosted_page";
        let session = created(&body(more)).unwrap();
        assert_eq!((session.amount(), session.currency.as_str()), (200, "usd"));
        assert_eq!(session.client_reference_id.as_deref(), Some("u1"));
        assert_eq!(session.metadata["pack"], "3");
        assert_eq!(session.intent_metadata["order"], "o1");
        assert_eq!(session.customer_email.as_deref(), Some("a@b.c"));
        assert!(session.has_adaptive_pricing);
        assert!(!created(&body("&adaptive_pricing[enabled]=false")).unwrap().has_adaptive_pricing);
        assert_eq!(session.status, Status::Open);
        assert_eq!(session.expires_at, 1_000_000 + DAY);
        assert!(session.id.starts_with("cs_test_"));
    }

    #[test]
    fn invalid_requests_are_rejected() {
        let valid = body("");
        let invalid = [
            valid.replace("mode=payment", "mode=subscription"),
            valid.replace("mode=payment", ""),
            valid.replace(ITEM, ""),
            valid.replace("success_url", "cancel_url"),
            body("&ui_mode=embedded_page"),
            body("&color=red"),
            body("&expires_at=1001000"),
            body("&expires_at=2000000"),
            body("&expires_at=soon"),
            body("&customer_email=nobody"),
            body("&line_items[1][amount]=100&line_items[1][currency]=usd&line_items[1][name]=x"),
            valid.replace("unit_amount]=200", "unit_amount]=-200"),
            valid.replace("unit_amount]=200", "unit_amount]=2.50"),
            valid.replace("unit_amount]=200", "unit_amount]=0"),
            valid.replace("unit_amount]=200", "unit_amount]=9223372036854775807"),
            valid.replace("[quantity]=1", "[quantity]=0"),
            valid.replace("[quantity]=1", "[quantity]=9223372036854775807"),
            valid.replace("currency]=usd", "currency]=dollars"),
            valid.replace("http://ui.test", "javascript:alert(1)//"),
            body(&format!("&metadata[a]={}", "x".repeat(501))),
        ];
        for form in invalid {
            assert!(created(&form).is_err(), "{form}");
        }
        assert!(created(&valid).is_ok());
    }

    #[test]
    fn the_error_names_the_missing_parameter() {
        let error = created(&body("").replace("[quantity]=1", "[quantity]=")).unwrap_err();
        assert_eq!(error, StripeError::missing("line_items[0][quantity]"));
    }
}
