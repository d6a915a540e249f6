//! Rate limit headers, parsed by the crate `sfv`.

use sfv::{BareItem, List, ListEntry, Parser};
use slidegate::time::{Clock, SystemClock};

use super::client::HttpAnswer;
use super::test_server::TestServer;
use crate::service::HeaderSet;

const RULES: &str = "
rules:
  api: { limit: 5/1m }
  quick: { limit: 1/1500ms }
  quickest: { limit: 1/500ms }
  both: { limits: [500/10m, 2/24h] }
  odd!#$&'()*+,-.:;<=>?@[]^_`|~: { limit: 3/1h }
";

/// The name and a parameter of the only item of a list.
fn item(answer: &HttpAnswer, header: &str, parameter: &str) -> (String, Option<i64>) {
    let value = answer.header(header).unwrap_or_else(|| panic!("{header}: {answer:?}"));
    let list: List = Parser::new(&value).parse().unwrap_or_else(|error| panic!("{value}: {error}"));
    let [ListEntry::Item(item)] = &list[..] else { panic!("one item: {value}") };
    let BareItem::String(name) = &item.bare_item else { panic!("a string: {value}") };
    let parameter = item.params.iter().find(|(key, _)| key.as_str() == parameter);
    let number = parameter.map(|(_, number)| match number {
        BareItem::Integer(number) => i64::from(*number),
        other => panic!("{other:?}: {value}"),
    });
    (name.as_str().to_owned(), number)
}

fn check(server: &TestServer, rule: &str, cost: u64) -> HttpAnswer {
    server.post("/v1/check", &format!(r#"{{"rule":"{rule}","key":"alice","cost":{cost}}}"#))
}

#[test]
fn both_fields_are_structured_and_agree_with_the_body() {
    let server = TestServer::start(RULES);
    for (cost, status) in [(2, 200), (2, 200), (2, 429), (1, 200), (1, 429)] {
        let answer = check(&server, "api", cost);
        let json = answer.json();
        assert_eq!(answer.status, status);
        assert_eq!(item(&answer, "ratelimit-policy", "q"), ("api".into(), Some(5)));
        assert_eq!(item(&answer, "ratelimit-policy", "w"), ("api".into(), Some(60)));
        assert_eq!(item(&answer, "ratelimit", "r"), ("api".into(), json["remaining"].as_i64()));
        let empty = status == 429 && json["remaining"] == 0;
        let wait = if empty { &json["retry_after_ms"] } else { &json["reset_after_ms"] };
        let seconds = wait.as_u64().unwrap().div_ceil(1_000);
        assert_eq!(item(&answer, "ratelimit", "t").1, i64::try_from(seconds).ok());
        let retry = answer.header("retry-after").map(|seconds| seconds.parse::<u64>().unwrap());
        let retry_ms = json["retry_after_ms"].as_u64().unwrap();
        assert_eq!(retry, (status == 429).then(|| retry_ms.div_ceil(1_000).max(1)));
    }
}

#[test]
fn windows_are_rounded_up_and_left_out_below_a_second() {
    let server = TestServer::start(RULES);
    assert_eq!(item(&check(&server, "quick", 1), "ratelimit-policy", "w").1, Some(2));
    assert_eq!(item(&check(&server, "quickest", 1), "ratelimit-policy", "w").1, None);
    let denied = loop {
        let answer = check(&server, "quickest", 1);
        if answer.status == 429 {
            break answer;
        }
    };
    assert_eq!(denied.header("retry-after").as_deref(), Some("1"), "never 0");
}

#[test]
fn headers_show_the_binding_limit() {
    let server = TestServer::start(RULES);
    let answer = check(&server, "both", 1);
    assert_eq!(item(&answer, "ratelimit-policy", "q"), ("both".into(), Some(2)));
    assert_eq!(item(&answer, "ratelimit-policy", "w"), ("both".into(), Some(86_400)));
}

#[test]
fn every_character_of_a_rule_name_is_allowed() {
    let server = TestServer::start(RULES);
    let name = "odd!#$&'()*+,-.:;<=>?@[]^_`|~";
    assert_eq!(item(&check(&server, name, 1), "ratelimit", "r"), (name.into(), Some(2)));
}

#[test]
fn settings_choose_the_sets_of_headers() {
    let server = TestServer::start_with(RULES, |settings| settings.headers = vec![HeaderSet::XRateLimit]);
    let answer = check(&server, "api", 2);
    let value = |name: &str| answer.header(name).map(|value| value.parse::<u64>().unwrap());
    let reset = answer.json()["reset_after_ms"].as_u64().unwrap().div_ceil(1_000);
    assert_eq!([value("x-ratelimit-limit"), value("x-ratelimit-remaining")], [Some(5), Some(3)]);
    assert_eq!((value("x-ratelimit-reset"), answer.header("ratelimit")), (Some(reset), None));

    let both = vec![HeaderSet::Draft11, HeaderSet::GitHub];
    let server = TestServer::start_with(RULES, |settings| settings.headers = both);
    let before = SystemClock::new().now_us() / 1_000_000;
    let answer = check(&server, "api", 2);
    let value = |name: &str| answer.header(name).map(|value| value.parse::<u64>().unwrap());
    assert_eq!([value("x-ratelimit-used"), value("x-ratelimit-remaining")], [Some(2), Some(3)]);
    let reset = value("x-ratelimit-reset").unwrap();
    assert!((before + 60..before + 180).contains(&reset), "{reset} is an instant, about {before} + 60");
    assert!(answer.header("ratelimit").is_some());

    let server = TestServer::start_with(RULES, |settings| settings.headers = Vec::new());
    let answer = check(&server, "api", 5);
    assert!(answer.header("ratelimit").is_none() && answer.header("x-ratelimit-limit").is_none());
    assert!(check(&server, "api", 1).header("retry-after").is_some(), "on every 429");
}
