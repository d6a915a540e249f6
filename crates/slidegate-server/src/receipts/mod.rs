//! Receipts as text, signed with the store's secret.

mod base64url;
mod text;

pub(crate) use text::{BadReceipt, ReceiptText};
