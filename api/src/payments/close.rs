//! Closing a page to pay on before its time.

use stripe::StripeRequest;
use stripe_checkout::checkout_session::ExpireCheckoutSession;

use super::{Payments, PaymentsError, patiently};

impl Payments {
    /// Closes the page called `session`, so that nobody pays on it any more. One that is done with or closed
    /// already is refused.
    pub async fn close(&self, session: &str) -> Result<(), PaymentsError> {
        let request = ExpireCheckoutSession::new(session);
        patiently(|| request.customize().send(&self.client)).await.map(drop)
    }
}
