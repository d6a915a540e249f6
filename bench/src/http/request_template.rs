//! The bytes of a request, with a placeholder for the key.

/// The key in a body, with a placeholder for its number.
pub(crate) const KEY: &str = "user:NUMBER7";
/// The placeholder.
const NUMBER: &str = "NUMBER7";
/// Digits of a number, so that all requests have the same length.
const DIGITS: usize = 7;

/// A request without the number of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestTemplate {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl RequestTemplate {
    pub(crate) fn post(port: u16, path: &str, body: &str) -> Self {
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len() + DIGITS - NUMBER.len()
        );
        let (before, after) = text.split_once(NUMBER).expect("the body has the key");
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    /// Overwrites `to` with the request for a key.
    pub(crate) fn write(&self, key: u64, to: &mut Vec<u8>) {
        to.clear();
        to.extend_from_slice(self.before.as_bytes());
        let mut digits = [b'0'; DIGITS];
        let mut rest = key;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
        }
        to.extend_from_slice(&digits);
        to.extend_from_slice(self.after.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_length_matches_the_body_for_every_key() {
        let template = RequestTemplate::post(8080, "/v1/check", &format!(r#"{{"key":"{KEY}"}}"#));
        for (key, shown) in [(0, "0000000"), (1_234_567, "1234567")] {
            let mut bytes = b"left over".to_vec();
            template.write(key, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert_eq!(body, format!(r#"{{"key":"user:{shown}"}}"#));
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
            assert!(head.starts_with("POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), "{head}");
        }
    }
}
