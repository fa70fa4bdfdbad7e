//! The JSON of Stripe's objects, every field that a strict client wants included.

use serde_json::{Value, json};

use super::books::{Dispute, Refund};
use super::events::News;
use super::sessions::{Item, Payment, PaymentState, Session, Status, UiMode};

/// The version of Stripe's API whose shapes these are.
pub const API_VERSION: &str = "2026-09-30.endive";

/// A checkout session; `public_url` is where the buyer's browser reaches us.
pub fn session(session: &Session, public_url: &str) -> Value {
    let amount = session.amount();
    let is_paid = session.is_paid();
    let hosted = session.ui_mode == UiMode::HostedPage;
    let url = (hosted && session.status == Status::Open)
        .then(|| format!("{public_url}/pay/{}", session.id));
    let mut object = session_without_facts();
    let facts = json!({
        "id": session.id,
        "amount_subtotal": amount,
        "amount_total": amount,
        "cancel_url": session.cancel_url,
        "client_reference_id": session.client_reference_id,
        "client_secret": session.client_secret,
        "created": session.created,
        "currency": session.currency,
        "customer_details": customer_details(session),
        "customer_email": session.customer_email,
        "expires_at": session.expires_at,
        "metadata": session.metadata,
        "payment_intent": session.payment.as_ref().map(|payment| &payment.intent),
        "payment_status": if is_paid { "paid" } else { "unpaid" },
        "redirect_on_completion": (!hosted).then_some("always"),
        "return_url": session.return_url,
        "status": session.status,
        "success_url": session.success_url,
        "ui_mode": session.ui_mode,
        "url": url,
    });
    merge(&mut object, facts);
    object
}

/// What is the same for all our sessions.
fn session_without_facts() -> Value {
    json!({
        "object": "checkout.session",
        "adaptive_pricing": {"enabled": false},
        "after_expiration": null,
        "allow_promotion_codes": null,
        "automatic_tax": {"enabled": false, "liability": null, "provider": null, "status": null},
        "billing_address_collection": null,
        "collected_information": null,
        "consent": null,
        "consent_collection": null,
        "currency_conversion": null,
        "custom_fields": [],
        "custom_text": {
            "after_submit": null, "shipping_address": null, "submit": null, "terms_of_service_acceptance": null,
        },
        "customer": null,
        "customer_account": null,
        "customer_creation": "if_required",
        "discounts": [],
        "invoice": null,
        "invoice_creation": null,
        "livemode": false,
        "locale": null,
        "mode": "payment",
        "origin_context": null,
        "payment_link": null,
        "payment_method_collection": "if_required",
        "payment_method_configuration_details": null,
        "payment_method_options": {},
        "payment_method_types": ["card"],
        "permissions": null,
        "phone_number_collection": {"enabled": false},
        "recovered_from": null,
        "saved_payment_method_options": null,
        "setup_intent": null,
        "shipping_address_collection": null,
        "shipping_cost": null,
        "shipping_options": [],
        "submit_type": null,
        "subscription": null,
        "total_details": {"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0},
        "wallet_options": null,
    })
}

fn merge(object: &mut Value, facts: Value) {
    if let (Value::Object(object), Value::Object(facts)) = (object, facts) {
        object.extend(facts);
    }
}

fn customer_details(session: &Session) -> Value {
    let email = session.paid_by.as_ref().or(session.customer_email.as_ref());
    let Some(email) = email else { return Value::Null };
    json!({
        "address": null, "business_name": null, "email": email, "individual_name": null, "name": null,
        "phone": null, "tax_exempt": "none", "tax_ids": [],
    })
}

/// One page of a list.
pub fn list(url: &str, data: &[Value], has_more: bool) -> Value {
    json!({"object": "list", "data": data, "has_more": has_more, "url": url})
}

/// What a session is about.
pub fn line_items(session: &Session) -> Value {
    let items: Vec<_> = session.items.iter().map(|item| line_item(session, item)).collect();
    list(&format!("/v1/checkout/sessions/{}/line_items", session.id), &items, false)
}

fn line_item(session: &Session, item: &Item) -> Value {
    let amount = item.unit_amount * item.quantity;
    json!({
        "id": item.id,
        "object": "item",
        "adjustable_quantity": null,
        "amount_discount": 0,
        "amount_subtotal": amount,
        "amount_tax": 0,
        "amount_total": amount,
        "currency": session.currency,
        "description": item.name,
        "metadata": {},
        "price": {
            "id": item.id.replace("li_", "price_"),
            "object": "price",
            "active": false,
            "billing_scheme": "per_unit",
            "created": session.created,
            "currency": session.currency,
            "custom_unit_amount": null,
            "livemode": false,
            "lookup_key": null,
            "metadata": {},
            "nickname": null,
            "product": item.id.replace("li_", "prod_"),
            "recurring": null,
            "tax_behavior": "unspecified",
            "tiers_mode": null,
            "transform_quantity": null,
            "type": "one_time",
            "unit_amount": item.unit_amount,
            "unit_amount_decimal": item.unit_amount.to_string(),
        },
        "quantity": item.quantity,
    })
}

/// The payment of a session.
pub fn payment_intent(session: &Session, payment: &Payment) -> Value {
    let amount = session.amount();
    let (status, received, charge) = match payment.state {
        PaymentState::Processing => ("processing", 0, Some(&payment.charge)),
        PaymentState::Succeeded => ("succeeded", amount, Some(&payment.charge)),
        PaymentState::Failed => ("requires_payment_method", 0, None),
    };
    json!({
        "id": payment.intent,
        "object": "payment_intent",
        "amount": amount,
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": received,
        "application": null,
        "application_fee_amount": null,
        "automatic_payment_methods": null,
        "canceled_at": null,
        "cancellation_reason": null,
        "capture_method": "automatic_async",
        "client_secret": format!("{}_secret_{}", payment.intent, payment.charge),
        "confirmation_method": "automatic",
        "created": payment.created,
        "currency": session.currency,
        "customer": null,
        "description": null,
        "last_payment_error": null,
        "latest_charge": charge,
        "livemode": false,
        "metadata": session.intent_metadata,
        "next_action": null,
        "on_behalf_of": null,
        "payment_method": null,
        "payment_method_configuration_details": null,
        "payment_method_options": {},
        "payment_method_types": ["card"],
        "processing": null,
        "receipt_email": null,
        "review": null,
        "setup_future_usage": null,
        "shipping": null,
        "source": null,
        "statement_descriptor": null,
        "statement_descriptor_suffix": null,
        "status": status,
        "transfer_data": null,
        "transfer_group": null,
    })
}

/// The charge of a payment.
pub fn charge(session: &Session, payment: &Payment) -> Value {
    let amount = session.amount();
    let came = payment.state == PaymentState::Succeeded;
    let status = match payment.state {
        PaymentState::Processing => "pending",
        PaymentState::Succeeded => "succeeded",
        PaymentState::Failed => "failed",
    };
    json!({
        "id": payment.charge,
        "object": "charge",
        "amount": amount,
        "amount_captured": if came { amount } else { 0 },
        "amount_refunded": payment.refunded,
        "application": null,
        "application_fee": null,
        "application_fee_amount": null,
        "balance_transaction": null,
        "billing_details": {
            "address": null, "email": session.paid_by, "name": null, "phone": null, "tax_id": null,
        },
        "calculated_statement_descriptor": "RETOUCH",
        "captured": came,
        "created": payment.created,
        "currency": session.currency,
        "customer": null,
        "description": null,
        "disputed": payment.disputed,
        "failure_balance_transaction": null,
        "failure_code": null,
        "failure_message": null,
        "fraud_details": {},
        "livemode": false,
        "metadata": session.intent_metadata,
        "on_behalf_of": null,
        "outcome": null,
        "paid": came,
        "payment_intent": payment.intent,
        "payment_method": null,
        "payment_method_details": null,
        "receipt_email": null,
        "receipt_number": null,
        "receipt_url": null,
        "refunded": came && payment.refunded == amount,
        "review": null,
        "shipping": null,
        "source_transfer": null,
        "statement_descriptor": null,
        "statement_descriptor_suffix": null,
        "status": status,
        "transfer_data": null,
        "transfer_group": null,
    })
}

/// Money that went back.
pub fn refund(session: &Session, payment: &Payment, refund: &Refund) -> Value {
    json!({
        "id": refund.id,
        "object": "refund",
        "amount": refund.amount,
        "balance_transaction": null,
        "charge": payment.charge,
        "created": refund.created,
        "currency": session.currency,
        "destination_details": null,
        "metadata": refund.metadata,
        "payment_intent": payment.intent,
        "reason": refund.reason,
        "receipt_number": null,
        "source_transfer_reversal": null,
        "status": "succeeded",
        "transfer_reversal": null,
    })
}

/// Money that the buyer's bank asks back.
pub fn dispute(session: &Session, payment: &Payment, dispute: &Dispute) -> Value {
    json!({
        "id": dispute.id,
        "object": "dispute",
        "amount": dispute.amount,
        "balance_transactions": [],
        "charge": payment.charge,
        "created": dispute.created,
        "currency": session.currency,
        "enhanced_eligibility_types": [],
        "evidence": {"customer_email_address": session.paid_by, "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": dispute.created + 7 * 24 * 60 * 60, "enhanced_eligibility": {}, "has_evidence": false,
            "past_due": false, "submission_count": 0,
        },
        "is_charge_refundable": false,
        "livemode": false,
        "metadata": {},
        "payment_intent": payment.intent,
        "reason": dispute.reason,
        "status": dispute.status,
    })
}

/// What made something happen: a request to the API, or (both empty) the buyer or the clock.
#[derive(Clone, Debug, Default)]
pub struct Cause {
    /// `req_…`
    pub request: Option<String>,
    /// The key that the request came with.
    pub idempotency_key: Option<String>,
}

/// The envelope around what happened.
pub fn event(id: &str, news: &News, cause: &Cause, created: i64, webhooks: usize) -> Value {
    json!({
        "id": id,
        "object": "event",
        "api_version": API_VERSION,
        "created": created,
        "data": {"object": news.object},
        "livemode": false,
        "pending_webhooks": webhooks,
        "request": {"id": cause.request, "idempotency_key": cause.idempotency_key},
        "type": news.kind.name(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sessions::tests::session as open_session;
    use super::*;

    #[test]
    fn the_address_of_the_page_is_there_as_long_as_one_can_pay() {
        let mut open = open_session();
        let object = session(&open, "http://127.0.0.1:1");
        assert_eq!(object["url"], "http://127.0.0.1:1/pay/cs_test_1");
        assert_eq!(
            (&object["status"], &object["payment_status"]),
            (&json!("open"), &json!("unpaid"))
        );
        assert_eq!(object["payment_intent"], Value::Null);
        open.pay(Some("a@b.c"), 1500).unwrap();
        let object = session(&open, "http://127.0.0.1:1");
        assert_eq!(object["url"], Value::Null);
        assert_eq!(
            (&object["status"], &object["payment_status"]),
            (&json!("complete"), &json!("paid"))
        );
        assert_eq!(object["customer_details"]["email"], "a@b.c");
    }

    #[test]
    fn a_session_has_the_arrays_and_objects_that_strict_clients_want() {
        let object = session(&open_session(), "");
        for name in ["custom_fields", "payment_method_types", "shipping_options"] {
            assert!(object[name].is_array(), "{name}");
        }
        assert_eq!(object["automatic_tax"]["enabled"], false);
        assert_eq!(object["custom_text"].as_object().unwrap().len(), 4);
    }

    #[test]
    fn a_charge_is_refunded_only_when_all_of_it_is() {
        let mut paid = open_session();
        paid.pay(None, 1500).unwrap();
        let mut payment = paid.payment.clone().unwrap();
        payment.refunded = 50;
        let half = charge(&paid, &payment);
        assert_eq!((&half["amount_refunded"], &half["refunded"]), (&json!(50), &json!(false)));
        payment.refunded = 200;
        assert_eq!(charge(&paid, &payment)["refunded"], true);
    }
}
