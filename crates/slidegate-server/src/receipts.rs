//! Receipts as text for the wires, signed with the store's secret, so that a client cannot change them.
//!
//! ```text
//! base64url( version  id  store  charge+  MAC )       numbers: 7 bits per byte, the lowest first
//!                                                     texts: length, bytes; a key with its tag is one text
//! charge = rule  key  cost  algorithm  parameter  limits  (units  window  order  position) per limit
//! MAC    = the first 16 bytes of HMAC-SHA256 under the store's secret
//! ```
//!
//! The secret belongs to the store, so that all servers that share the store accept the receipt. A store that lost its
//! secret with its data has got another one, so there may be several: the first signs, and all are accepted. The MAC is checked
//! before anything is parsed; signed bytes that still do not parse are refused. Base64url is read without padding and
//! without stray bits, so that a receipt has exactly one text.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ring::hmac;
use slidegate::receipt::{Backlog, ChargePlace, Position, ReceiptCharge, ReceiptId, ReceiptStamp};
use slidegate::rule::{Algorithm, Decimal, Limit};
use slidegate::store::SECRET_BYTES;
use slidegate::{Key, Rate, Receipt};
use subtle::ConstantTimeEq;
use thiserror::Error;

const VERSION: u8 = 2;
const MAC_BYTES: usize = 16;
/// Longest text: 64 charges with the longest names and keys fit.
const TEXT_MAX: usize = 128 << 10;

/// Writes and reads the receipts of one store.
#[derive(Debug)]
pub(crate) struct ReceiptCodec {
    /// The first signs. Never empty.
    keys: ArcSwap<Vec<SigningKey>>,
}

/// The secret, and the key made of it.
#[derive(Debug)]
struct SigningKey {
    secret: Secret,
    key: hmac::Key,
}

impl SigningKey {
    fn new(secret: &[u8; SECRET_BYTES]) -> Self {
        Self { secret: Secret(*secret), key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }
}

/// A secret of a store. `Debug` does not print it.
#[derive(Clone, Copy)]
struct Secret([u8; SECRET_BYTES]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("...")
    }
}

/// A text that is no receipt of this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("receipt: is not one of this store, or was changed; present it exactly as the answer had it")]
pub(crate) struct BadReceipt;

impl ReceiptCodec {
    /// Signs with a secret of the store.
    pub(crate) fn new(secret: &[u8; SECRET_BYTES]) -> Self {
        Self { keys: ArcSwap::from_pointee(vec![SigningKey::new(secret)]) }
    }

    /// The secret that signs.
    pub(crate) fn secret(&self) -> [u8; SECRET_BYTES] {
        self.keys.load()[0].secret.0
    }

    /// Signs with the first of these secrets from now on, and accepts all of them. Returns whether they are others than
    /// before.
    pub(crate) fn set_secrets(&self, secrets: &[[u8; SECRET_BYTES]]) -> bool {
        let known = self.keys.load();
        if secrets.is_empty() || known.iter().map(|key| &key.secret.0).eq(secrets) {
            return false;
        }
        self.keys.store(Arc::new(secrets.iter().map(SigningKey::new).collect()));
        true
    }

    /// Appends the receipt as text. `scratch` is overwritten; a caller that reuses it saves an allocation.
    pub(crate) fn write(&self, receipt: &Receipt, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        scratch.clear();
        scratch.push(VERSION);
        scratch.extend_from_slice(&receipt.id().get().to_le_bytes());
        scratch.extend_from_slice(&receipt.store().to_le_bytes());
        for charge in receipt.charges() {
            write_charge(charge, scratch);
        }
        let mac = hmac::sign(&self.keys.load()[0].key, scratch);
        scratch.extend_from_slice(&mac.as_ref()[..MAC_BYTES]);
        append_base64url(scratch, out);
    }

    /// Reads a text that [`Self::write`] made under one of the secrets.
    pub(crate) fn read(&self, text: &str) -> Result<Receipt, BadReceipt> {
        if text.len() > TEXT_MAX {
            return Err(BadReceipt);
        }
        let bytes = BASE64URL.decode(text).map_err(|_| BadReceipt)?;
        let (signed, mac) = bytes.split_at_checked(bytes.len().wrapping_sub(MAC_BYTES)).ok_or(BadReceipt)?;
        let is_signed = |key: &SigningKey| {
            let expected = hmac::sign(&key.key, signed);
            bool::from(mac.ct_eq(&expected.as_ref()[..MAC_BYTES]))
        };
        if !self.keys.load().iter().any(is_signed) {
            return Err(BadReceipt);
        }
        read_receipt(signed).ok_or(BadReceipt)
    }
}

fn append_base64url(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + (bytes.len() * 4).div_ceil(3), 0);
    BASE64URL.encode_slice(bytes, &mut out[start..]).expect("there is room for four digits per three bytes");
}

fn write_charge(charge: &ReceiptCharge, out: &mut Vec<u8>) {
    write_text(charge.rule(), out);
    write_text(charge.key().identity(), out);
    write_number(charge.cost(), out);
    let places = charge.places();
    let (code, parameter) = places[0].limit.algorithm().code();
    out.push(code);
    write_number(parameter, out);
    write_number(places.len() as u64, out);
    for ChargePlace { limit, order, position } in places {
        write_number(limit.units(), out);
        write_number(limit.window_us(), out);
        write_number(*order, out);
        match *position {
            Position::At(at) => write_number(at, out),
            Position::Line { charged_us, backlog, given_back } => {
                write_number(charged_us, out);
                out.extend_from_slice(&backlog.get().to_le_bytes());
                write_number(given_back, out);
            }
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_number(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_receipt(bytes: &[u8]) -> Option<Receipt> {
    let mut reader = Reader(bytes);
    if reader.take::<1>()? != [VERSION] {
        return None;
    }
    let id = ReceiptId::new(u64::from_le_bytes(reader.take()?));
    let store = u32::from_le_bytes(reader.take()?);
    let mut charges = Vec::new();
    while !reader.0.is_empty() {
        charges.push(reader.charge()?);
    }
    (!charges.is_empty()).then(|| Receipt::new(ReceiptStamp { id, store }, charges))
}

/// The bytes left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.0.split_first_chunk()?;
        self.0 = left;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.take()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'a str> {
        let bytes = usize::try_from(self.number()?).ok()?;
        let (text, left) = self.0.split_at_checked(bytes)?;
        self.0 = left;
        str::from_utf8(text).ok()
    }

    fn charge(&mut self) -> Option<ReceiptCharge> {
        let (rule, key, cost) = (self.text()?, self.text()?, self.number()?);
        let [code] = self.take()?;
        let algorithm = Algorithm::of_code(code, self.number()?)?;
        let mut places = Vec::new();
        for _ in 0..self.number()? {
            places.push(self.place(algorithm)?);
        }
        let key = Key::from_identity(key).ok()?;
        (!places.is_empty()).then(|| ReceiptCharge::new(rule, key, cost, places))
    }

    fn place(&mut self, algorithm: Algorithm) -> Option<ChargePlace> {
        let (units, window_us) = (self.number()?, self.number()?);
        let rate = Rate::new(units, Duration::from_micros(window_us)).ok()?;
        let order = self.number()?;
        let position = match algorithm {
            Algorithm::Gcra => Position::Line {
                charged_us: self.number()?,
                backlog: Backlog::new(self.take().map(u128::from_le_bytes)?),
                given_back: self.number()?,
            },
            _ => Position::At(self.number()?),
        };
        Some(ChargePlace { limit: Limit::new(rate, Decimal::ZERO, algorithm), order, position })
    }
}

#[cfg(test)]
mod tests;
