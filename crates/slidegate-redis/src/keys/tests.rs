//! Names lead back to their keys, and no two states share a name.

use slidegate::OwnedKey;

use super::*;

/// Ordinary keys, and hostile ones.
const KEYS: &[&[u8]] = &[
    b"alice",
    b"203.0.113.45",
    b"2001:db8::/64",
    b"{braces}",
    b"}:api",
    b"%7B",
    b"100%",
    b"%",
    b"a\0b",
    b"line\nbreak\r\n",
    b"*?[a-z]^\\",
    "k\u{e4}se \u{1f9c0}".as_bytes(),
    b"\xff\xfe",
    b"",
];
const RULES: &[&[u8]] =
    &[b"api", b"/api", b"api/", b"sliding-log/60s", b"a:b", b"api:spent:00", b"r{1}", b"*"];

fn template(text: &str) -> KeyTemplate {
    KeyTemplate::new(text).unwrap()
}

#[test]
fn names_are_as_documented() {
    let default = KeyTemplate::default();
    assert_eq!(default, template("sg:{{key}}:{rule}"));
    assert_eq!(default.name(b"api", b"alice"), b"sg:{alice}:api");
    assert_eq!(default.name(b"api", b"a}{%b"), b"sg:{a%7D%7B%25b}:api");
    assert_eq!(default.name(b"api", b"a\0\n*"), b"sg:{a\0\n*}:api");
    assert_eq!(template("rlaas:rate_limit:{key}").name(b"api", b"alice"), b"rlaas:rate_limit:alice");
    assert_eq!(template("{rule}/{key}/{key}").name(b"r", b"k"), b"r/k/k");
    assert_eq!(template("{keys}{key}{ rule }").name(b"r", b"k"), b"{keys}k{ rule }");
    assert_eq!(KeyTemplate::with_prefix("eu:sg").unwrap().name(b"api", b"a"), b"eu:sg:{a}:api");
}

#[test]
fn every_name_of_a_rule_leads_back_to_its_key() {
    for (&rule, &key) in RULES.iter().flat_map(|rule| KEYS.iter().map(move |key| (rule, key))) {
        for text in ["sg:{{key}}:{rule}", "rlaas:{key}", "{key}", "{rule}/{key}-{key}", "{key}{rule}"] {
            let template = template(text);
            let name = template.name(rule, key);
            let named = NamedKey { tag: None, key: key.to_vec(), shard: None };
            assert_eq!(template.key_of(&name, rule), Some(named), "{text} {name:?}");
        }
    }
}

#[test]
fn no_two_states_share_a_name() {
    let default = KeyTemplate::default();
    let pairs = RULES.iter().flat_map(|rule| KEYS.iter().map(|key| default.name(*rule, key)));
    let mut names: Vec<_> = pairs.collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), RULES.len() * KEYS.len());
}

/// Texts that could be taken for the signs between the parts of a name.
const TEXTS: [&str; 8] = ["a", "alice", "}{", "a}{b", "a%s1", "%", "%7D%7B", "{t}{a}"];

/// The toy version writes `TAG/KEY`, which is a key of its own.
#[test]
fn tagged_keys_and_shards_have_names_of_their_own_that_lead_back() {
    let mut names = Vec::new();
    let default = KeyTemplate::default();
    for (key, tag) in TEXTS.iter().flat_map(|key| TEXTS.map(|tag| (*key, tag))) {
        let (plain, tagged) = (Key::new(key).unwrap(), OwnedKey::tagged(key, tag).unwrap());
        for (key, tag) in [(plain, None), (tagged.key(), Some(tag))] {
            for shard in [None, Some(0), Some(255)] {
                let owned = shard.map_or(OwnedKey::from(key), |shard| key.of_shard(shard));
                for text in ["sg:{{key}}:{rule}", "rlaas:{key}", "{rule}/{key}-{key}", "{key}{rule}"] {
                    let template = template(text);
                    let name = template.state("api", owned.key());
                    let found = NamedKey { tag: tag.map(Into::into), key: key.as_str().into(), shard };
                    assert_eq!(template.key_of(&name, b"api"), Some(found), "{text} {name:?}");
                    assert!(matches(&template.pattern(b"api"), &name), "{text} {name:?}");
                }
                names.push(default.state("api", owned.key()));
            }
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), TEXTS.len() * 3 + TEXTS.len() * TEXTS.len() * 3);
}

#[test]
fn the_hash_tag_is_the_tag_or_the_shard() {
    let default = KeyTemplate::default();
    let alice = Key::new("alice").unwrap();
    let tagged = OwnedKey::tagged("alice", "team:7").unwrap();
    assert_eq!(default.state("api", alice), b"sg:{alice}:api");
    assert_eq!(default.state("api", tagged.key()), b"sg:{team:7}{alice}:api");
    assert_eq!(default.state("api", alice.of_shard(3).key()), b"sg:{alice%s3}:api");
    assert_eq!(default.state("api", tagged.key().of_shard(3).key()), b"sg:{team:7}{alice%s3}:api");
}

#[test]
fn a_name_of_another_program_has_no_key() {
    let default = KeyTemplate::default();
    for name in [
        &b"sg:alice:api"[..],
        b"sg:{alice:api",
        b"sg:{alice}api",
        b"sg:{a{b}:api",
        b"sg:{a%b}:api",
        b"sg:{a%7b}:api",
        b"sg:{alice}:a}pi",
        b"sg:{a}{b}{c}:api",
        b"sg:{a%s}:api",
        b"sg:{a%s01}:api",
        b"sg:{a%s65536}:api",
        b"sg:{a%s1%s2}:api",
        b"sg:{a%s1}{b}:api",
        b"other:{alice}:api",
        b"",
    ] {
        assert_eq!(default.key_of(name, b"api"), None, "{name:?}");
    }
    assert_eq!(default.key_of(b"sg:{alice}:api2", b"api"), None);
    assert_eq!(template("{rule}/{key}-{key}").key_of(b"r/ab-cd", b"r"), None);
}

#[test]
fn a_spent_record_has_the_name_of_its_state_and_is_no_state() {
    let default = KeyTemplate::default();
    let name = spent_name(&default.name(b"api", b"alice"), ReceiptId::new(0xBEEF));
    assert_eq!(name, b"sg:{alice}:api%spent:000000000000beef");
    assert_eq!(default.key_of(&name, b"api"), None);
}

#[test]
fn the_secret_has_a_name_that_no_state_has() {
    assert_eq!(KeyTemplate::default().secret(), b"sg:{}:%secret");
    for text in ["sg:{{key}}:{rule}", "rlaas:{key}", "{key}{rule}", "{rule}/{key}"] {
        let template = template(text);
        let secret = template.secret();
        for rule in RULES.iter().copied().chain([&b"%secret"[..], b"secret"]) {
            assert_eq!(template.key_of(&secret, rule), None, "{text}");
        }
    }
}

/// Matches as Redis does: `*` anything, a backslash takes the next byte literally.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        ([b'\\', literal, rest @ ..], [first, name @ ..]) => literal == first && matches(rest, name),
        ([first, rest @ ..], [byte, name @ ..]) => first == byte && matches(rest, name),
        _ => false,
    }
}

#[test]
fn a_rule_s_pattern_finds_its_states_and_no_others() {
    let default = KeyTemplate::default();
    assert_eq!(default.pattern(b"api"), b"sg:{*}:api");
    assert_eq!(default.pattern(b"a*"), b"sg:{*}:a\\*");
    assert_eq!(template("[x]?{key}\\").pattern(b"api"), b"\\[x\\]\\?*\\\\");
    for (&rule, &other) in RULES.iter().flat_map(|rule| RULES.iter().map(move |other| (rule, other))) {
        for key in KEYS {
            let found = matches(&default.pattern(rule), &default.name(other, key));
            assert_eq!(found, rule == other, "{rule:?} {other:?} {key:?}");
        }
    }
}

#[test]
fn invalid_templates_are_refused_with_the_remedy() {
    let error = KeyTemplate::new("sg:{rule}").unwrap_err();
    assert_eq!(error, OptionsError::Template { template: "sg:{rule}".into() });
    assert!(error.to_string().contains("has no {key}") && error.to_string().contains("`sg:{{key}}:{rule}`"));
    for prefix in ["", "{a}", "a}"] {
        let error = KeyTemplate::with_prefix(prefix).unwrap_err();
        assert_eq!(error, OptionsError::Prefix { prefix: prefix.into() });
    }
}

#[test]
fn a_template_is_displayed_as_it_was_written() {
    for text in ["sg:{{key}}:{rule}", "rlaas:rate_limit:{key}", "{keys}{key}{ rule }"] {
        assert_eq!(template(text).to_string(), text);
    }
}

#[test]
fn two_charges_of_one_name_are_refused_with_the_remedy() {
    let quota = template("rlaas:rate_limit:{key}");
    let names = |pairs: &[(&str, &str)], template: &KeyTemplate| -> Vec<Vec<u8>> {
        pairs.iter().map(|(rule, key)| template.name(rule, key)).collect()
    };
    assert_eq!(quota.check_distinct(&names(&[("api", "alice")], &quota)), Ok(()));
    assert_eq!(quota.check_distinct(&names(&[("api", "alice"), ("api", "bob")], &quota)), Ok(()));
    let pairs = [("api", "alice"), ("api", "bob"), ("search", "alice")];
    let error = quota.check_distinct(&names(&pairs, &quota)).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    for part in
        ["`rlaas:rate_limit:{key}`", "`rlaas:rate_limit:alice`", "write {rule}", "`sg:{{key}}:{rule}`"]
    {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(KeyTemplate::default().check_distinct(&names(&pairs, &KeyTemplate::default())), Ok(()));
    // A template may have both placeholders and nothing between them.
    let joined = template("{key}{rule}");
    assert!(joined.check_distinct(&names(&[("c", "ab"), ("bc", "a")], &joined)).is_err());
}
