//! Stripe's objects as JSON.

use serde_json::{Value, json};

use super::events::EventData;
use super::session::{Payment, Session, Status};
use super::store::Dispute;

/// The version of Stripe's API that these objects follow.
const API_VERSION: &str = "2026-09-30.endive";

/// Renders a checkout session. `public_url` is the address at which browsers reach the stand-in.
pub fn session(session: &Session, public_url: &str) -> Value {
    let amount = session.amount();
    let is_open = session.status == Status::Open;
    let mut object = session_defaults();
    let fields = json!({
        "id": session.id,
        "adaptive_pricing": {"enabled": session.has_adaptive_pricing},
        "amount_subtotal": amount,
        "amount_total": amount,
        "cancel_url": session.cancel_url,
        "client_reference_id": session.client_reference_id,
        "client_secret": null,
        "created": session.created,
        "currency": session.currency,
        "customer_details": customer_details(session),
        "customer_email": session.customer_email,
        "expires_at": session.expires_at,
        "metadata": session.metadata,
        "payment_intent": session.payment.as_ref().map(|payment| &payment.intent),
        "payment_status": if session.is_paid() { "paid" } else { "unpaid" },
        "redirect_on_completion": null,
        "return_url": null,
        "status": session.status,
        "success_url": session.success_url,
        "ui_mode": "hosted_page",
        "url": is_open.then(|| format!("{public_url}/pay/{}", session.id)),
    });
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

/// The fields that are the same in every session. The API's client requires all of them.
fn session_defaults() -> Value {
    json!({
        "object": "checkout.session",
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

fn customer_details(session: &Session) -> Value {
    let email = session.paid_by.as_ref().or(session.customer_email.as_ref());
    let Some(email) = email else { return Value::Null };
    json!({
        "address": null, "business_name": null, "email": email, "individual_name": null, "name": null,
        "phone": null, "tax_exempt": "none", "tax_ids": [],
    })
}

pub fn charge(session: &Session, payment: &Payment) -> Value {
    let amount = session.amount();
    json!({
        "id": payment.charge,
        "object": "charge",
        "amount": amount,
        "amount_captured": amount,
        "amount_refunded": payment.refunded,
        "billing_details": {"email": session.paid_by},
        "created": payment.created,
        "currency": session.currency,
        "disputed": payment.disputed,
        "livemode": false,
        "metadata": session.intent_metadata,
        "paid": true,
        "payment_intent": payment.intent,
        "refunded": payment.refunded == amount,
        "status": "succeeded",
    })
}

pub fn dispute(session: &Session, payment: &Payment, dispute: &Dispute) -> Value {
    json!({
        "id": dispute.id,
        "object": "dispute",
        "amount": dispute.amount,
        "charge": payment.charge,
        "created": dispute.created,
        "currency": session.currency,
        "livemode": false,
        "metadata": {},
        "payment_intent": payment.intent,
        "reason": "fraudulent",
        "status": dispute.status,
    })
}

pub fn event(id: &str, event: &EventData, created: i64, pending_webhooks: usize) -> Value {
    json!({
        "id": id,
        "object": "event",
        "api_version": API_VERSION,
        "created": created,
        "data": {"object": event.object},
        "livemode": false,
        "pending_webhooks": pending_webhooks,
        "request": {"id": null, "idempotency_key": null},
        "type": event.kind,
    })
}

#[cfg(test)]
mod tests {
    use super::super::session::Action;
    use super::super::session::tests::session as open_session;
    use super::*;

    #[test]
    fn a_session_has_an_address_while_it_is_open() {
        let mut open = open_session();
        let object = session(&open, "http://127.0.0.1:1");
        assert_eq!(object["url"], "http://127.0.0.1:1/pay/cs_test_1");
        assert_eq!(
            (&object["status"], &object["payment_status"]),
            (&json!("open"), &json!("unpaid"))
        );
        assert_eq!(object["payment_intent"], Value::Null);
        open.apply(Action::Pay, Some("a@b.c"), 1500).unwrap();
        let object = session(&open, "http://127.0.0.1:1");
        assert_eq!(object["url"], Value::Null);
        assert_eq!(
            (&object["status"], &object["payment_status"]),
            (&json!("complete"), &json!("paid"))
        );
        assert_eq!(object["customer_details"]["email"], "a@b.c");
    }

    #[test]
    fn only_a_full_refund_marks_a_charge_as_refunded() {
        let mut paid = open_session();
        paid.apply(Action::Pay, None, 1500).unwrap();
        let mut payment = paid.payment.clone().unwrap();
        payment.refunded = 50;
        let half = charge(&paid, &payment);
        assert_eq!((&half["amount_refunded"], &half["refunded"]), (&json!(50), &json!(false)));
        payment.refunded = 200;
        assert_eq!(charge(&paid, &payment)["refunded"], true);
    }
}
