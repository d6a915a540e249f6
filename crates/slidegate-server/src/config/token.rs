//! Reads `tokens`: the hashes and scopes of the tokens that callers may send, by name.

use serde_saphyr::Spanned;

use super::finding::Findings;
use super::node::{Node, YamlValue};
use super::section::Section;
use crate::text::{did_you_mean, excerpt};
use crate::tokens::{HASH_BYTES, Scope, Scopes, Token};

/// Most tokens: every request with a token is compared with all of them.
pub(super) const TOKENS_MAX: usize = 64;
/// Longest name of a token.
pub(super) const NAME_BYTES_MAX: usize = 128;

const EXAMPLE: &str = "`slidegate token` prints one";
const HASH: &str = "is not the SHA-256 hash of a token, 64 hexadecimal digits";

/// Reads all tokens; adds all their mistakes to `findings`.
pub(super) fn read(node: &Node, findings: &mut Findings) -> Vec<(String, Token)> {
    let expected = ("tokens by name", "{ web: { sha256: HASH, scopes: [check] } }");
    let Some(mut section) = Section::open("tokens: ".to_owned(), node, expected, findings) else {
        return Vec::new();
    };
    let count = section.fields.len();
    if !(1..=TOKENS_MAX).contains(&count) {
        section
            .mistake(node.referenced, &format!("{count} given; give 1 to {TOKENS_MAX}, or remove the field"));
        return Vec::new();
    }
    let mut tokens: Vec<(String, Token)> = Vec::new();
    for (name, node) in section.fields {
        let Some(token) = read_one(name, node, section.findings) else { continue };
        if let Some((other, _)) = tokens.iter().find(|(_, other)| other.hash == token.hash) {
            let (one, other) = (excerpt(&name.value), excerpt(other));
            let text = format!("token `{one}`: sha256: is also that of token `{other}`; remove one of them");
            section.findings.add(name.referenced, &text);
        }
        tokens.push((name.value.clone(), token));
    }
    tokens
}

fn read_one(name: &Spanned<String>, node: &Node, findings: &mut Findings) -> Option<Token> {
    let (prefix, at) = (format!("token `{}`: ", excerpt(&name.value)), name.referenced);
    let expected = ("fields", "{ sha256: HASH, scopes: [check] }");
    let mut section = Section::open(prefix, node, expected, findings)?;
    let is_name = name.value.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_name || !(1..=NAME_BYTES_MAX).contains(&name.value.len()) {
        let text = format!("is not a name; write 1 to {NAME_BYTES_MAX} printable ASCII characters");
        section.mistake(at, &text);
    }
    for (name, _) in section.fields {
        section.check_name(name, &["sha256", "scopes"], &[], "is not a field of a token");
    }
    if section.node("sha256").is_none() {
        section.mistake(at, &format!("sha256: is missing; {EXAMPLE}"));
    }
    if section.node("scopes").is_none() {
        section.mistake(at, &format!("scopes: is missing; write some of {}", Scope::NAMES.join(", ")));
    }
    let hash = section.read("sha256", hash);
    let scopes = scopes(&mut section);
    section.has_no_mistakes().then_some(Token { hash: hash?, scopes })
}

/// Reads a hash. The mistake does not quote the text, which may be the token itself.
fn hash(node: &Node) -> Result<[u8; HASH_BYTES], String> {
    let digits = match &node.value {
        YamlValue::Text(text) => text.as_bytes(),
        _ => &[],
    };
    let mut hash = [0; HASH_BYTES];
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != HASH_BYTES || !rest.is_empty() {
        return Err(format!("{HASH}; {EXAMPLE}"));
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err(format!("{HASH}; {EXAMPLE}"));
        };
        *byte = high << 4 | low;
    }
    Ok(hash)
}

/// Reads the scopes: a list, or one of them.
fn scopes(section: &mut Section<'_, '_>) -> Scopes {
    let mut scopes = Scopes::default();
    let Some(node) = section.node("scopes") else { return scopes };
    let items = match &node.value {
        YamlValue::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if items.is_empty() {
        let text = format!("scopes: is empty; write some of {}", Scope::NAMES.join(", "));
        section.mistake(node.referenced, &text);
    }
    for item in items {
        let name = item.value.text().unwrap_or_default();
        let text = match Scope::named(&name) {
            Some(scope) if scopes.insert(scope) => continue,
            Some(_) => format!("scopes: `{name}` is given twice; keep one of them"),
            None => {
                format!("scopes: {} is unknown; {}", item.value.kind(), did_you_mean(&name, &Scope::NAMES))
            }
        };
        section.mistake(item.referenced, &text);
    }
    scopes
}
