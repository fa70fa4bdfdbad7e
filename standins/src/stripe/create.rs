//! From the fields of `POST /v1/checkout/sessions` to an open session, or to the refusal that Stripe gives.

use std::collections::BTreeMap;

use super::form::Form;
use super::new_id;
use super::refusal::Refusal;
use super::sessions::{Item, Session, Status, UiMode};

/// What a session may be created with; the fields that we do not look at change nothing here.
const KNOWN: [&str; 29] = [
    "adaptive_pricing",
    "allow_promotion_codes",
    "automatic_tax",
    "billing_address_collection",
    "branding_settings",
    "cancel_url",
    "client_reference_id",
    "consent_collection",
    "currency",
    "custom_text",
    "customer_creation",
    "customer_email",
    "expand",
    "expires_at",
    "invoice_creation",
    "line_items",
    "locale",
    "metadata",
    "mode",
    "origin_context",
    "payment_intent_data",
    "payment_method_options",
    "payment_method_types",
    "phone_number_collection",
    "return_url",
    "submit_type",
    "success_url",
    "ui_mode",
    "wallet_options",
];
const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * MINUTE;
/// The largest amount that Stripe takes, 8 digits.
const LARGEST_AMOUNT: i64 = 99_999_999;

/// The session that `form` asks for.
pub fn create(form: &Form, now: i64) -> Result<Session, Refusal> {
    if let Some(name) = form.names().find(|name| !KNOWN.contains(name)) {
        let refusal = Refusal::invalid(format!("Received unknown parameter: {name}"));
        return Err(refusal.coded("parameter_unknown").about(name));
    }
    match form.text("mode") {
        Some("payment") => {}
        Some(_) => {
            let message = "The stand-in only knows the mode `payment`.";
            return Err(Refusal::invalid(message).about("mode"));
        }
        None => return Err(Refusal::missing("mode")),
    }
    let ui_mode = ui_mode(form)?;
    let (currency, items) = items(form)?;
    let id = new_id("cs_test");
    let embedded = ui_mode == UiMode::EmbeddedPage;
    Ok(Session {
        client_secret: embedded.then(|| format!("{id}_secret_{}", new_id("cs"))),
        id,
        created: now,
        expires_at: expires_at(form, now)?,
        status: Status::Open,
        ui_mode,
        items,
        currency,
        success_url: address(form, "success_url")?,
        cancel_url: address(form, "cancel_url")?,
        return_url: address(form, "return_url")?,
        client_reference_id: reference(form)?,
        metadata: metadata(form)?,
        intent_metadata: form.inner("payment_intent_data").map_or(Ok(BTreeMap::new()), metadata)?,
        customer_email: email(form)?,
        paid_by: None,
        payment: None,
    })
}

fn ui_mode(form: &Form) -> Result<UiMode, Refusal> {
    let (mode, wanted, forbidden): (_, _, &[&str]) = match form.text("ui_mode") {
        None | Some("hosted_page") => (UiMode::HostedPage, "success_url", &["return_url"]),
        Some("embedded_page") => {
            (UiMode::EmbeddedPage, "return_url", &["success_url", "cancel_url"])
        }
        Some(other) => {
            let message = format!(
                "Invalid ui_mode: must be one of hosted_page or embedded_page (the stand-in knows no others), not {other}"
            );
            return Err(Refusal::invalid(message).about("ui_mode"));
        }
    };
    if let Some(name) = forbidden.iter().find(|name| form.text(name).is_some()) {
        let message = format!("`{name}` is not supported with this `ui_mode`; use `{wanted}`.");
        return Err(Refusal::invalid(message).about(name));
    }
    if form.text(wanted).is_none() {
        return Err(Refusal::missing(wanted));
    }
    Ok(mode)
}

fn items(form: &Form) -> Result<(String, Vec<Item>), Refusal> {
    let entries = form.list("line_items").filter(|entries| !entries.is_empty());
    let entries = entries.ok_or_else(|| Refusal::missing("line_items"))?;
    let priced: Vec<_> =
        entries.iter().enumerate().map(|(at, entry)| item(entry, at)).collect::<Result<_, _>>()?;
    let currency = priced[0].0.clone();
    if priced.iter().any(|(other, _)| *other != currency) {
        return Err(Refusal::invalid("All line items must have the same currency."));
    }
    let items: Vec<_> = priced.into_iter().map(|(_, item)| item).collect();
    let total = items.iter().try_fold(0_i64, |sum, item| {
        item.unit_amount.checked_mul(item.quantity).and_then(|amount| sum.checked_add(amount))
    });
    match total {
        Some(1..=LARGEST_AMOUNT) => Ok((currency, items)),
        Some(0) => Err(Refusal::invalid("The total amount must be greater than zero.")
            .coded("amount_too_small")),
        Some(_) | None => {
            Err(Refusal::invalid("The total amount is too large.").coded("amount_too_large"))
        }
    }
}

fn item(entry: &Form, at: usize) -> Result<(String, Item), Refusal> {
    let param = |name: &str| format!("line_items[{at}]{name}");
    let price = entry.inner("price_data").ok_or_else(|| {
        let message =
            "You must provide `price_data` for each line item (the stand-in has no stored prices).";
        Refusal::invalid(message).about(&param("[price_data]"))
    })?;
    let currency = price.text("currency").map(str::to_lowercase);
    let currency = currency.ok_or_else(|| Refusal::missing(&param("[price_data][currency]")))?;
    if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_lowercase()) {
        let message = format!("Invalid currency: {currency}");
        return Err(Refusal::invalid(message).about(&param("[price_data][currency]")));
    }
    let product = price.inner("product_data");
    let name = product.and_then(|product| product.text("name"));
    let name = name.ok_or_else(|| Refusal::missing(&param("[price_data][product_data][name]")))?;
    let whole = |form: &Form, name: &str, param: &str, least: i64| {
        let number = form.integer(name, param)?.ok_or_else(|| Refusal::missing(param))?;
        let wrong = || Refusal::invalid(format!("{param} must be at least {least}")).about(param);
        (number >= least).then_some(number).ok_or_else(wrong)
    };
    let item = Item {
        id: new_id("li"),
        name: name.to_owned(),
        description: product.and_then(|product| product.text("description")).map(str::to_owned),
        unit_amount: whole(price, "unit_amount", &param("[price_data][unit_amount]"), 0)?,
        quantity: whole(entry, "quantity", &param("[quantity]"), 1)?,
    };
    Ok((currency, item))
}

fn expires_at(form: &Form, now: i64) -> Result<i64, Refusal> {
    let Some(at) = form.integer("expires_at", "expires_at")? else { return Ok(now + DAY) };
    // The caller's clock may be a little behind ours.
    if at < now + 30 * MINUTE - 5 {
        let message = "The `expires_at` timestamp must be at least 30 minutes from Checkout Session creation.";
        return Err(Refusal::invalid(message).about("expires_at"));
    }
    if at > now + DAY + 5 {
        let message =
            "The `expires_at` timestamp must be less than 24 hours from Checkout Session creation.";
        return Err(Refusal::invalid(message).about("expires_at"));
    }
    Ok(at)
}

fn address(form: &Form, name: &str) -> Result<Option<String>, Refusal> {
    let Some(text) = form.text(name) else { return Ok(None) };
    // The placeholder is no part of an address yet.
    let is_web = url::Url::parse(&text.replace("{CHECKOUT_SESSION_ID}", "id"))
        .is_ok_and(|address| matches!(address.scheme(), "http" | "https") && address.has_host());
    if is_web && text.is_ascii() && !text.contains(char::is_control) {
        return Ok(Some(text.to_owned()));
    }
    Err(Refusal::invalid("Not a valid URL").coded("url_invalid").about(name))
}

fn reference(form: &Form) -> Result<Option<String>, Refusal> {
    let reference = form.text("client_reference_id");
    if reference.is_some_and(|text| text.chars().count() > 200) {
        let message = "Invalid string: client_reference_id must be at most 200 characters";
        return Err(Refusal::invalid(message).about("client_reference_id"));
    }
    Ok(reference.map(str::to_owned))
}

fn email(form: &Form) -> Result<Option<String>, Refusal> {
    let Some(text) = form.text("customer_email") else { return Ok(None) };
    if is_email(text) {
        return Ok(Some(text.to_owned()));
    }
    // Unlike Stripe's, our message does not repeat the address: messages end up in logs.
    Err(Refusal::invalid("Invalid email address").coded("email_invalid").about("customer_email"))
}

/// Whether `text` looks like an email address.
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

/// The caller's notes, within Stripe's limits.
pub fn metadata(form: &Form) -> Result<BTreeMap<String, String>, Refusal> {
    let notes = form.texts("metadata");
    let too_long =
        |(key, value): (&String, &String)| key.chars().count() > 40 || value.chars().count() > 500;
    if notes.len() > 50 || notes.iter().any(too_long) {
        let message = "Metadata can have up to 50 keys of up to 40 characters, with values of up to 500 characters.";
        return Err(Refusal::invalid(message).about("metadata"));
    }
    Ok(notes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const ITEM: &str = "line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=200\
        &line_items[0][price_data][product_data][name]=20+credits&line_items[0][quantity]=1";

    /// The body of a good request, with `more` after it.
    pub fn body(more: &str) -> String {
        format!("mode=payment&{ITEM}&success_url=http://ui.test/r?s={{CHECKOUT_SESSION_ID}}{more}")
    }

    fn made(body: &str) -> Result<Session, Refusal> {
        create(&Form::parse(body.as_bytes())?, 1_000_000)
    }

    #[test]
    fn a_session_takes_what_it_is_given() {
        let more = "&client_reference_id=u1&metadata[pack]=3&customer_email=a@b.c&cancel_url=http://ui.test/\
            &payment_intent_data[metadata][order]=o1";
        let session = made(&body(more)).unwrap();
        assert_eq!((session.amount(), session.currency.as_str()), (200, "usd"));
        assert_eq!(session.client_reference_id.as_deref(), Some("u1"));
        assert_eq!(session.metadata["pack"], "3");
        assert_eq!(session.intent_metadata["order"], "o1");
        assert_eq!(session.customer_email.as_deref(), Some("a@b.c"));
        assert_eq!(session.status, Status::Open);
        assert_eq!(session.expires_at, 1_000_000 + DAY);
        assert!(session.id.starts_with("cs_test_"));
    }

    #[test]
    fn an_embedded_session_has_a_secret_and_a_way_back_of_its_own() {
        let form = format!("mode=payment&ui_mode=embedded_page&{ITEM}&return_url=http://ui.test/r");
        let session = made(&form).unwrap();
        assert!(session.client_secret.unwrap().starts_with(&session.id));
    }

    #[test]
    fn wrong_combinations_are_refused() {
        let hosted = body("");
        let wrong = [
            hosted.replace("mode=payment", "mode=subscription"),
            hosted.replace("mode=payment", ""),
            hosted.replace(ITEM, ""),
            hosted.replace("success_url", "cancel_url"),
            body("&return_url=http://ui.test/r"),
            body("&ui_mode=embedded_page&return_url=http://ui.test/r"),
            body("&ui_mode=hosted"),
            format!("mode=payment&ui_mode=embedded_page&{ITEM}"),
            body("&colour=red"),
            body("&expires_at=1001000"),
            body("&expires_at=2000000"),
            body("&expires_at=soon"),
            body("&customer_email=nobody"),
            body("&line_items[1][amount]=100&line_items[1][currency]=usd&line_items[1][name]=x"),
            hosted.replace("unit_amount]=200", "unit_amount]=-200"),
            hosted.replace("unit_amount]=200", "unit_amount]=2.50"),
            hosted.replace("unit_amount]=200", "unit_amount]=0"),
            hosted.replace("unit_amount]=200", "unit_amount]=9223372036854775807"),
            hosted.replace("[quantity]=1", "[quantity]=0"),
            hosted.replace("[quantity]=1", "[quantity]=9223372036854775807"),
            hosted.replace("currency]=usd", "currency]=dollars"),
            hosted.replace("http://ui.test", "javascript:alert(1)//"),
            body(&format!("&metadata[a]={}", "x".repeat(501))),
        ];
        for form in wrong {
            assert!(made(&form).is_err(), "{form}");
        }
        assert!(made(&hosted).is_ok());
    }

    #[test]
    fn the_refusal_names_what_is_missing() {
        let refusal = made(&body("").replace("[quantity]=1", "[quantity]=")).unwrap_err();
        assert_eq!(refusal, Refusal::missing("line_items[0][quantity]"));
    }
}
