//! Options as parameters of a URL: `redis://localhost/2?key_prefix=app&deadline=20ms`.
//!
//! [`PARAMETERS`] lists them, each with the function that sets its option. Parameters of the address (`protocol`, and
//! `db`, `user` and `pass` of a socket) are not in it: they stay in the URL, which [`Endpoint::parse`] reads.
//!
//! [`Endpoint::parse`]: crate::endpoint::Endpoint::parse

use std::time::Duration;

use slidegate::rate::parse_window;
use slidegate::ruleset::nearest;

use crate::options::{OptionsError, RedisOptions};

/// Sets an option from the text of its parameter.
type Setter = fn(RedisOptions, &str) -> Result<RedisOptions, OptionsError>;

/// The parameters that every scheme has.
pub(crate) const PARAMETERS: [(&str, Setter); 7] = [
    (KEY_PREFIX, |options, text| options.key_prefix(text)),
    (KEY_TEMPLATE, |options, text| options.key_template(text)),
    ("log_layout", |options, text| Ok(options.log_layout(text.parse()?))),
    ("deadline", |options, text| options.deadline(duration("deadline", text)?)),
    ("connect_timeout", |options, text| options.connect_timeout(duration("connect_timeout", text)?)),
    ("connections", |options, text| options.connections(count(text)?)),
    ("deny_cache", |options, text| options.deny_cache(hold(text)?)),
];

/// Both set the names of keys, so only one of them can be given.
const KEY_PREFIX: &str = "key_prefix";
const KEY_TEMPLATE: &str = "key_template";

/// The most characters of a value that an error repeats.
const TEXT_CHARS_MAX: usize = 64;
/// Longest name that an error repeats: a longer one may be a misplaced password.
const NAME_BYTES_MAX: usize = 16;

/// A parameter: its name in [`PARAMETERS`] and its text.
type Given = (&'static str, String);

/// Splits a URL into its address, with the parameters that only the address has, and the parameters of [`PARAMETERS`],
/// percent-decoded.
pub(crate) fn split(url: &str) -> Result<(String, Vec<Given>), OptionsError> {
    let Some((address, query)) = url.split_once('?') else { return Ok((url.to_owned(), Vec::new())) };
    if query.contains('#') {
        return Err(OptionsError::Url { why: "a parameter has a `#`; write %23 for it" });
    }
    let (mut address, mut names, mut given) = (address.to_owned(), Vec::new(), Vec::new());
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, text) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = percent_decoded(name).unwrap_or_default();
        if names.contains(&name) {
            return Err(OptionsError::DuplicateParameter { name: printable(&name) });
        }
        if let Some((known, _)) = PARAMETERS.iter().find(|(known, _)| *known == name) {
            let text = percent_decoded(text).ok_or(OptionsError::Percent { name: known })?;
            given.push((*known, text));
        } else {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(parameter);
        }
        names.push(name);
    }
    Ok((address, given))
}

/// The error of an unknown parameter. `of_address` are the parameters that the address may have.
pub(crate) fn unknown(name: &str, of_address: &[&'static str]) -> OptionsError {
    let known: Vec<&str> = names().chain(of_address.iter().copied()).collect();
    let remedy = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("remove it, or choose from: {}", known.join(", ")),
    };
    OptionsError::Parameter { name: printable(name), remedy }
}

fn names() -> impl Iterator<Item = &'static str> {
    PARAMETERS.iter().map(|(name, _)| *name)
}

/// Sets the option of a parameter.
pub(crate) fn set(options: RedisOptions, name: &str, text: &str) -> Result<RedisOptions, OptionsError> {
    let Some((name, setter)) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
        return Err(unknown(name, &[]));
    };
    if other_of_names(name).is_some_and(|other| options.given.contains(&other)) {
        return Err(OptionsError::PrefixAndTemplate);
    }
    let mut options = setter(options, text)?;
    options.given.push(name);
    Ok(options)
}

/// Whether the parameter, or the other one that sets the same option, was given.
pub(crate) fn is_given(options: &RedisOptions, name: &str) -> bool {
    options.given.iter().any(|given| *given == name || other_of_names(given) == Some(name))
}

fn other_of_names(name: &str) -> Option<&'static str> {
    match name {
        KEY_PREFIX => Some(KEY_TEMPLATE),
        KEY_TEMPLATE => Some(KEY_PREFIX),
        _ => None,
    }
}

fn duration(name: &'static str, text: &str) -> Result<Duration, OptionsError> {
    let has_number = text.starts_with(|first: char| first.is_ascii_digit());
    let wrong = || OptionsError::Duration { name, text: shortened(text) };
    parse_window(text).filter(|_| has_number).ok_or_else(wrong)
}

fn count(text: &str) -> Result<usize, OptionsError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| OptionsError::Count { text: shortened(text) })
}

/// How long the deny cache holds a denial; zero for no cache.
fn hold(text: &str) -> Result<Duration, OptionsError> {
    match text {
        "0" | "off" => Ok(Duration::ZERO),
        _ => duration("deny_cache", text).map_err(|_| OptionsError::DenyCache { text: shortened(text) }),
    }
}

/// Decodes percent-encoding; a plus sign stays one. `None` if it is malformed or not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| plain)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The start of a value, for an error.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// A word of the URL for an error, `?` if it might be a misplaced password.
pub(crate) fn printable(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    if word.len() <= NAME_BYTES_MAX && word.chars().all(is_plain) { word.into() } else { "?".into() }
}

#[cfg(test)]
mod tests {
    use slidegate::Key;

    use super::*;
    use crate::LogLayout;

    fn options(url: &str) -> RedisOptions {
        RedisOptions::new(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// The name of alice's state.
    fn name(options: &RedisOptions) -> String {
        String::from_utf8(options.keys.state("api", Key::new("alice").unwrap())).unwrap()
    }

    fn error(url: &str) -> String {
        RedisOptions::new(url).expect_err(url).to_string()
    }

    #[test]
    fn every_option_can_be_a_parameter_of_every_scheme() {
        let parameters = "key_prefix=app&deadline=20ms&connections=4&log_layout=sorted-set&connect_timeout=2s&deny_cache=200ms";
        for address in [
            "redis://localhost/2",
            "rediss://bob:hunter2@localhost",
            "valkey://localhost",
            "valkeys://localhost/0",
            "unix:///run/redis.sock",
            "redis+sentinel://h1,h2:7000/main/2",
        ] {
            let parsed = options(&format!("{address}?{parameters}"));
            assert_eq!(name(&parsed), "app:{alice}:api");
            assert_eq!((parsed.deadline, parsed.connections), (Duration::from_millis(20), 4));
            assert_eq!(
                (parsed.connect_timeout, parsed.log_layout),
                (Duration::from_secs(2), LogLayout::SortedSet)
            );
            assert_eq!(parsed.deny_cache, Some(Duration::from_millis(200)));
            let plain = options(address);
            let servers = |options: &RedisOptions| format!("{:?}", options.endpoint.servers);
            assert_eq!(servers(&parsed), servers(&plain));
            assert_eq!(parsed.endpoint.login.db(), plain.endpoint.login.db());
        }
    }

    /// Parameters of the address stand among ours.
    #[test]
    fn parameters_of_the_address_stay() {
        let socket = options("unix:///run/redis.sock?user=bob&deadline=1s&pass=s%26cret&db=7&connections=3");
        let login = &socket.endpoint.login;
        assert_eq!((login.username(), login.password(), login.db()), (Some("bob"), Some("s&cret"), 7));
        assert_eq!((socket.deadline, socket.connections), (Duration::from_secs(1), 3));
        let old = options("redis://localhost/?deadline=1s&protocol=resp2");
        assert!(!old.endpoint.login.protocol().supports_resp3());
    }

    #[test]
    fn values_are_percent_decoded() {
        for (text, name) in [
            ("rlaas:rate_limit:{key}", "rlaas:rate_limit:alice"),
            ("rlaas%3Arate_limit%3A%7Bkey%7D", "rlaas:rate_limit:alice"),
            ("100%25%26%3D%3F%23+%20{key}/{rule}", "100%&=?#+ alice/api"),
            ("k%C3%A4se:{key}", "k\u{e4}se:alice"),
            ("a=b:{key}", "a=b:alice"),
        ] {
            let parsed = options(&format!("redis://localhost?key_template={text}"));
            assert_eq!(self::name(&parsed), name, "{text}");
        }
        for text in ["%", "%7", "%zz{key}", "%+1{key}", "%ff{key}"] {
            let error = error(&format!("redis://localhost?key_template={text}"));
            assert!(error.contains("parameter `key_template`") && error.contains("%25"), "{text}: {error}");
        }
    }

    #[test]
    fn the_deny_cache_can_be_turned_off() {
        for text in ["0", "off", "0ms"] {
            assert_eq!(
                options(&format!("redis://localhost?deny_cache={text}")).deny_cache,
                Some(Duration::ZERO)
            );
        }
        assert_eq!(options("redis://localhost").deny_cache, None);
        for text in ["no", "1", "-1s", ""] {
            let error = error(&format!("redis://localhost?deny_cache={text}"));
            assert!(error.starts_with("deny_cache: ") && error.contains("or off"), "{text}: {error}");
        }
    }

    #[test]
    fn every_fault_names_the_parameter_and_the_remedy() {
        for (parameters, words) in [
            (
                "timeout=1s",
                "the parameter `timeout`, which is unknown; remove it, or choose from: key_prefix, key_template, log_layout, deadline, connect_timeout, connections, deny_cache, protocol",
            ),
            ("dedline=1s", "`dedline`, which is unknown; did you mean `deadline`?"),
            ("Deadline=1s", "`Deadline`, which is unknown; did you mean `deadline`?"),
            ("key-prefix=app", "`key-prefix`, which is unknown; did you mean `key_prefix`?"),
            ("deadline=1s&deadline=2s", "the parameter `deadline` twice; keep one of them"),
            ("protocol=resp2&protocol=resp3", "the parameter `protocol` twice; keep one of them"),
            ("deadline=1s&dead%6Cine=2s", "the parameter `deadline` twice"),
            (
                "deadline",
                "deadline: `` is not a duration; write a number and ms, s, m, h or d, for example 50ms",
            ),
            ("deadline=s", "deadline: `s` is not a duration"),
            ("connect_timeout=11m", "connect_timeout: 660s is out of range; give 1ms to 600s"),
            ("connections=0", "connections: 0 is out of range; give 1 to 64"),
            ("connections=+4", "connections: `+4` is not a whole number; write digits only"),
            ("log_layout=sorted_set", "log_layout: `sorted_set` is unknown; did you mean `sorted-set`?"),
            ("log_layout=list", "log_layout: `list` is unknown; choose from: packed, sorted-set"),
            ("key_prefix=", "key_prefix: `` cannot begin the names of keys"),
            ("key_template=sg:{rule}", "key_template: `sg:{rule}` has no {key}"),
            (
                "key_prefix=a&key_template={key}",
                "key_prefix and key_template both name the keys; keep one of them",
            ),
            ("deadline=1s#x", "write %23 for it"),
        ] {
            let url = format!("redis://bob:hunter2@localhost?{parameters}");
            let error = error(&url);
            assert!(error.contains(words), "{parameters}: {error}");
            assert!(error.contains("; ") || error.ends_with('?'), "{parameters}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    /// A password without its `pass=` is a name.
    #[test]
    fn a_misplaced_password_is_not_repeated() {
        for parameters in ["hunter2%20secret", "p@ssw0rd!", "0123456789abcdef0", "deadline=1s&p@ss&p@ss"] {
            let error = error(&format!("redis://localhost?{parameters}"));
            assert!(error.contains("`?`"), "{parameters}: {error}");
        }
    }

    #[test]
    fn a_default_does_not_replace_what_the_url_gives() {
        let parsed = options("redis://localhost?key_template={key}&deadline=1s");
        let parsed = parsed.parameter_unless_given("key_prefix", "app").unwrap();
        let parsed = parsed.parameter_unless_given("deadline", "2s").unwrap();
        let parsed = parsed.parameter_unless_given("connections", "5").unwrap();
        assert_eq!(name(&parsed), "alice");
        assert_eq!((parsed.deadline, parsed.connections), (Duration::from_secs(1), 5));
        assert!(parsed.parameter_unless_given("colour", "red").is_err());
    }
}
