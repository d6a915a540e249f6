//! The bytes of a request, with a place for the key.

/// The key in a body, where its number goes.
pub(crate) const KEY: &str = "user:NUMBER7";
/// What is replaced by the number.
const NUMBER: &str = "NUMBER7";
/// Digits of a number: all requests are of one length, so nothing but the digits changes.
const DIGITS: usize = 7;

/// A request, but for the number of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Question {
    pub(crate) fn post(port: u16, path: &str, body: &str) -> Self {
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len() + DIGITS - NUMBER.len()
        );
        let (before, after) = text.split_once(NUMBER).expect("the body has the key");
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    /// Writes the request of a key over what was there.
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
    fn the_length_is_that_of_the_body_whatever_the_key() {
        let question = Question::post(8080, "/v1/check", &format!(r#"{{"key":"{KEY}"}}"#));
        for (key, shown) in [(0, "0000000"), (1_234_567, "1234567")] {
            let mut bytes = b"left over".to_vec();
            question.write(key, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert_eq!(body, format!(r#"{{"key":"user:{shown}"}}"#));
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
            assert!(head.starts_with("POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), "{head}");
        }
    }
}
