//! Packs, prices, holds, debits and the ledger: the only code that writes a balance.
//!
//! A paid job *holds* its price from submission until it ends. Only a finished job is *debited*, in the
//! statement that marks it done ([`debit`]); every other end releases the hold. The database enforces
//! `credits >= reserved >= 0` and `credits = sum of the ledger`, whatever this code does.

mod adjustment;
mod audit;
pub(crate) mod debit;
mod grant;
mod hold;
mod ledger;
mod packs;
mod price;
mod reversal;

pub(crate) use adjustment::is_order_adjusted;
pub use adjustment::{AdjustError, Adjusted, Adjustment, adjust};
pub use audit::{Discrepancy, add_up, audit, sums_by_kind};
pub use grant::SIGNUP_CREDITS;
pub(crate) use grant::{forfeit, grant_purchase, grant_signup};
pub(crate) use hold::{lock_and_hold, release};
pub use ledger::{LedgerEntry, LedgerKind, ledger_after, recent_ledger};
pub use packs::{PACKS, Pack};
pub use price::price;
pub(crate) use reversal::{give_back, take_back};
