//! The payment page: plain HTML without JavaScript. After the payment, it offers refunds and disputes.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;

use super::create::is_email;
use super::engine::Engine;
use super::error::StripeError;
use super::form::Form;
use super::outbox::FirstAttempt;
use super::session::{Action, Item, Outcome, PaymentState, Session, Status};
use super::store::{DisputeStatus, Store};

const STYLE: &str = include_str!("page.css");
/// How long the buyer waits for the first delivery attempt before the redirect, as with Stripe.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the routes of the page. Anyone who knows a session's id can use them, as with Stripe.
pub fn routes() -> Router<Arc<Engine>> {
    Router::new().route("/pay/{id}", get(show).post(submit))
}

async fn show(
    State(engine): State<Arc<Engine>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let declined = query.as_deref() == Some("declined");
    let notice = declined.then_some("The card was declined. You have not paid. Please try again.");
    page(&engine, &id, StatusCode::OK, notice)
}

async fn submit(
    State(engine): State<Arc<Engine>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Response {
    match perform(&engine, &id, &body).await {
        Ok(address) => {
            ([(header::CACHE_CONTROL, "no-store")], Redirect::to(&address)).into_response()
        }
        Err(error) => page(&engine, &id, error.status, Some(error.message())),
    }
}

/// Performs the action of a button and returns the address to redirect to.
async fn perform(engine: &Engine, id: &str, body: &[u8]) -> Result<String, StripeError> {
    let form = Form::parse(body)?;
    let here = format!("/pay/{id}");
    let session = engine.read(|store| store.session(id).cloned())?;
    let act = |action| engine.act(id, action, form.text("email"));
    match form.text("action") {
        Some(button @ ("pay" | "pay_later")) => {
            check_email(&session, &form)?;
            let action = if button == "pay" { Action::Pay } else { Action::PayLater };
            wait_for_webhook(act(action)?).await;
            Ok(session.return_address().unwrap_or(here))
        }
        Some("decline") => act(Action::Decline).map(|_| format!("{here}?declined")),
        Some("expire") => done(act(Action::Expire)?, here).await,
        Some("back") => Ok(session.cancel_url.unwrap_or(here)),
        Some("succeed") => done(act(Action::Settle(Outcome::Succeeded))?, here).await,
        Some("fail") => done(act(Action::Settle(Outcome::Failed))?, here).await,
        Some("refund") => {
            let amount = form.integer("amount", "amount")?;
            done(engine.refund(id, amount)?, here).await
        }
        Some(button @ ("dispute" | "inquire")) => {
            let amount = form.integer("amount", "amount")?;
            let status = if button == "dispute" {
                DisputeStatus::NeedsResponse
            } else {
                DisputeStatus::WarningNeedsResponse
            };
            done(engine.open_dispute(id, amount, status)?.1, here).await
        }
        Some(button @ ("win" | "lose" | "escalate" | "settle")) => {
            let next = match button {
                "win" => DisputeStatus::Won,
                "lose" => DisputeStatus::Lost,
                "escalate" => DisputeStatus::NeedsResponse,
                _ => DisputeStatus::WarningClosed,
            };
            let dispute = engine.read(|store| open_dispute_of(store, id));
            let dispute =
                dispute.ok_or_else(|| StripeError::invalid("There is no open dispute."))?;
            done(engine.move_dispute(&dispute, next)?, here).await
        }
        _ => {
            let known = "pay, pay_later, decline, expire, back, succeed, fail, refund, dispute, inquire, escalate, \
                         settle, win, lose";
            Err(StripeError::invalid(format!("`action` must be one of {known}.")))
        }
    }
}

async fn done(first_attempt: Option<FirstAttempt>, next: String) -> Result<String, StripeError> {
    wait_for_webhook(first_attempt).await;
    Ok(next)
}

/// Waits for the first attempt to deliver the event, at most ten seconds.
pub async fn wait_for_webhook(first_attempt: Option<FirstAttempt>) {
    if let Some(first_attempt) = first_attempt {
        tokio::time::timeout(WEBHOOK_TIMEOUT, first_attempt).await.ok();
    }
}

fn check_email(session: &Session, form: &Form) -> Result<(), StripeError> {
    if session.customer_email.is_some() || form.text("email").is_some_and(is_email) {
        return Ok(());
    }
    Err(StripeError::invalid("Enter an email address like someone@example.com.")
        .with_param("email"))
}

fn open_dispute_of(store: &Store, session: &str) -> Option<String> {
    let mut disputes = store.disputes.values();
    let open = |status| {
        matches!(status, DisputeStatus::NeedsResponse | DisputeStatus::WarningNeedsResponse)
    };
    disputes.find(|it| it.session == session && open(it.status)).map(|it| it.id.clone())
}

fn page(engine: &Engine, id: &str, status: StatusCode, notice: Option<&str>) -> Response {
    let found = engine.read(|store| {
        let dispute = store.disputes.values().rfind(|dispute| dispute.session == id);
        let session = store.sessions.get(id).cloned();
        session.map(|session| (session, dispute.map(|dispute| dispute.status)))
    });
    let (status, title, body) = if let Some((session, dispute)) = found {
        (status, title(&session), body(&session, dispute, notice))
    } else {
        let text =
            "<h1>This checkout does not exist</h1>\n<p>Go back to the shop and start over.</p>\n";
        (StatusCode::NOT_FOUND, "This checkout does not exist", text.to_owned())
    };
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
        ),
    ];
    (status, headers, Html(document(title, &body))).into_response()
}

fn title(session: &Session) -> &'static str {
    match session.status {
        Status::Open => "Pay for your order",
        Status::Expired => "This checkout has expired",
        Status::Complete if session.is_paid() => "Paid",
        Status::Complete if session.is_processing() => "The payment is processing",
        Status::Complete => "The payment failed",
    }
}

fn body(session: &Session, dispute: Option<DisputeStatus>, notice: Option<&str>) -> String {
    let notice = notice.map(|text| {
        format!("<p class=\"bad\" role=\"alert\" id=\"notice\">{}</p>\n", escape(text))
    });
    let rest = match session.status {
        Status::Open => pay_form(session),
        Status::Expired => way_back("Back to the shop", session.cancel_url.as_deref()),
        Status::Complete => after_payment(session, dispute),
    };
    format!("<h1>{}</h1>\n{}{}{rest}", title(session), notice.unwrap_or_default(), order(session))
}

fn order(session: &Session) -> String {
    let row = |item: &Item| {
        let times =
            if item.quantity == 1 { String::new() } else { format!(" × {}", item.quantity) };
        format!(
            "<tr><th scope=\"row\">{}{times}</th><td>{}</td></tr>\n",
            escape(&item.name),
            money(item.unit_amount * item.quantity, &session.currency)
        )
    };
    let rows: String = session.items.iter().map(row).collect();
    let total = money(session.amount(), &session.currency);
    format!(
        "<table aria-label=\"Your order\">\n<tbody>\n{rows}</tbody>\n\
         <tfoot><tr><th scope=\"row\">Total</th><td>{total}</td></tr></tfoot>\n</table>\n"
    )
}

fn pay_form(session: &Session) -> String {
    let email = session.customer_email.as_deref().map(escape).unwrap_or_default();
    let fixed = if session.customer_email.is_some() { " readonly" } else { "" };
    let total = money(session.amount(), &session.currency);
    format!(
        "<form method=\"post\" action=\"/pay/{id}\">\n\
         <label for=\"email\">Email</label>\n\
         <input id=\"email\" name=\"email\" type=\"email\" autocomplete=\"email\" required value=\"{email}\"{fixed}>\n\
         <button class=\"go\" name=\"action\" value=\"pay\">Pay {total}</button>\n\
         <button name=\"action\" value=\"pay_later\" aria-describedby=\"later\">Pay later</button>\n\
         <p id=\"later\">Like a bank transfer: you place the order now, and decide on this page later whether the \
         money arrives.</p>\n\
         <div class=\"pair\">\n\
         <button name=\"action\" value=\"decline\" formnovalidate>Decline the card</button>\n\
         <button name=\"action\" value=\"expire\" formnovalidate>Let it expire</button>\n\
         </div>\n\
         <button name=\"action\" value=\"back\" formnovalidate>Back to the shop</button>\n\
         </form>\n",
        id = escape(&session.id),
    )
}

fn after_payment(session: &Session, dispute: Option<DisputeStatus>) -> String {
    let way_back = way_back("Back to the shop", session.return_address().as_deref());
    let Some(payment) = &session.payment else { return way_back };
    match payment.state {
        PaymentState::Failed => way_back,
        PaymentState::Processing => {
            let buttons = pair(("succeed", "The money comes"), ("fail", "It never comes"));
            format!("{}{way_back}", form(session, &buttons))
        }
        PaymentState::Succeeded => {
            let left = session.amount() - payment.refunded;
            let state = dispute_text(dispute).map_or_else(
                || refund_text(payment.refunded, &session.currency),
                |text| format!("<p>{text}</p>\n"),
            );
            let buttons = match dispute {
                Some(DisputeStatus::NeedsResponse) => {
                    pair(("win", "The shop wins"), ("lose", "The buyer wins"))
                }
                Some(DisputeStatus::WarningNeedsResponse) => {
                    pair(("settle", "The buyer is content"), ("escalate", "The bank disputes"))
                }
                Some(DisputeStatus::Won | DisputeStatus::Lost | DisputeStatus::WarningClosed) => {
                    String::new()
                }
                None if left == 0 => String::new(),
                None => format!(
                    "<label for=\"amount\">Amount in the smallest unit, such as cents</label>\n\
                     <input id=\"amount\" name=\"amount\" type=\"number\" min=\"1\" max=\"{left}\" value=\"{left}\">\n{}{}",
                    pair(("refund", "Refund"), ("dispute", "Open a dispute")),
                    button(("inquire", "Open an inquiry"))
                ),
            };
            let after = if buttons.is_empty() {
                String::new()
            } else {
                format!("<h2>Later</h2>\n{}", form(session, &buttons))
            };
            format!("{state}{way_back}{after}")
        }
    }
}

fn dispute_text(dispute: Option<DisputeStatus>) -> Option<&'static str> {
    Some(match dispute? {
        DisputeStatus::WarningNeedsResponse => "The buyer's bank inquires about the payment.",
        DisputeStatus::WarningClosed => "The inquiry is closed. The shop keeps the money.",
        DisputeStatus::NeedsResponse => "The buyer's bank disputes the payment.",
        DisputeStatus::Won => "The dispute is closed. The shop keeps the money.",
        DisputeStatus::Lost => "The dispute is closed. The buyer got the money back.",
    })
}

fn refund_text(refunded: i64, currency: &str) -> String {
    if refunded == 0 {
        return String::new();
    }
    format!("<p>Refunded: {}</p>\n", money(refunded, currency))
}

/// Formats an amount, such as `$12.34` or `12.34 EUR`.
fn money(amount: i64, currency: &str) -> String {
    let number = format!("{}.{:02}", amount / 100, amount % 100);
    if currency == "usd" {
        format!("${number}")
    } else {
        format!("{number} {}", currency.to_uppercase())
    }
}

fn pair(first: (&str, &str), second: (&str, &str)) -> String {
    format!("<div class=\"pair\">\n{}{}</div>\n", button(first), button(second))
}

fn button((value, text): (&str, &str)) -> String {
    format!("<button name=\"action\" value=\"{value}\">{text}</button>\n")
}

fn form(session: &Session, inner: &str) -> String {
    format!("<form method=\"post\" action=\"/pay/{}\">\n{inner}</form>\n", escape(&session.id))
}

fn way_back(text: &str, address: Option<&str>) -> String {
    let link = |address| format!("<p><a href=\"{}\">{text}</a></p>\n", escape(address));
    address.map(link).unwrap_or_default()
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"banner\" role=\"note\"><strong>No money moves here.</strong> This is the local stand-in for \
         Stripe's payment page.</p>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, letter| {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::super::session::tests::session;
    use super::*;

    #[test]
    fn the_page_shows_the_order_and_that_no_money_moves() {
        let mut session = session();
        session.items[0].name = "<20> credits & \"more\"".into();
        session.customer_email = Some("o'neil@b.c".into());
        let html = document(title(&session), &body(&session, None, None));
        for text in [
            "No money moves here",
            "&lt;20&gt; credits &amp; &quot;more&quot; × 2",
            "$2.00",
            "value=\"o&#39;neil@b.c\" readonly",
            "value=\"pay_later\"",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("//"), "it loads nothing from other servers");
    }

    #[test]
    fn an_expired_page_has_no_buttons() {
        let mut session = session();
        session.apply(Action::Expire, None, 1500).unwrap();
        let html = body(&session, None, None);
        assert!(!html.contains("<button"));
        assert!(html.contains("href=\"http://ui.test/pricing\""));
    }

    #[test]
    fn the_buttons_depend_on_the_payment() {
        let mut session = session();
        session.apply(Action::PayLater, None, 1500).unwrap();
        assert!(body(&session, None, None).contains("value=\"fail\""));
        session.apply(Action::Settle(Outcome::Succeeded), None, 1600).unwrap();
        assert!(body(&session, None, None).contains("value=\"refund\""));
        let disputed = body(&session, Some(DisputeStatus::NeedsResponse), None);
        assert!(disputed.contains("value=\"win\"") && !disputed.contains("value=\"refund\""));
        assert!(!body(&session, Some(DisputeStatus::Lost), None).contains("<button"));
    }
}
