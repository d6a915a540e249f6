//! The running server against outside tools: schemathesis checks it against the OpenAPI document, the client of
//! Prometheus parses the metrics.

use std::path::Path;
use std::process::Command;

use crate::program::file_of;
use crate::server_process::ServerProcess;
use slidegate::testing::search_size;

/// Where `cargo xtask test` puts the tools.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin");

const RULES: &str = "\
rules:
  api:     { limit: 60/1m }
  default: { limit: 5/60s }
  waf:     { limits: [20/1s, 2000/5m], algorithm: sliding-buckets, buckets: 60, shadow: true }
inline_rules: true
";

/// The checks of schemathesis. It does not check that data that fits the schema is accepted: a schema cannot express
/// that a key has no control characters, that a window parses, or that a cost is not above the limit of its rule.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,unsupported_method,allow_header_conformance";

/// A server with these rules.
fn start() -> ServerProcess {
    ServerProcess::start(&["--config", &file_of("rules.yaml", RULES)])
}

/// A tool, or the remedy.
pub(crate) fn tool(name: &str) -> Command {
    let path = format!("{TOOLS}/{name}");
    assert!(Path::new(&path).exists(), "{name} is not installed; `cargo xtask test` installs it");
    let mut command = Command::new(path);
    // It writes files to its working directory.
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

#[test]
fn answers_conform_to_the_openapi_document() {
    let server = start();
    let url = format!("http://{}", server.address);
    let examples = search_size(8).to_string();
    let holds = |args: &[&str]| {
        let output = tool("schemathesis")
            .args(["run", &format!("{url}/openapi.json"), "--url", &url, "--max-examples", &examples])
            // A fixed seed makes failures reproducible.
            .args(["--seed", "1", "--generation-deterministic", "--no-color", "--warnings", "off"])
            .args(args)
            .output()
            .expect("schemathesis starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    };
    holds(&["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"]);
    // A batch is answered with 200; the problem of one of its requests is in that request's answer.
    let refused = ["--checks", "negative_data_rejection", "--phases", "coverage"];
    holds(&[&refused[..], &["--mode", "negative", "--exclude-path", "/v1/check-batch"]].concat());
}

#[test]
fn the_client_of_prometheus_parses_the_metrics() {
    let server = start();
    let script = "
import sys, json, urllib.request
from prometheus_client.parser import text_string_to_metric_families
url = sys.argv[1]
for _ in range(6):
    urllib.request.urlopen(urllib.request.Request(url + '/v1/check', b'{\"rule\":\"api\",\"key\":\"alice\",\"cost\":7}',
        {'content-type': 'application/json'}))
text = urllib.request.urlopen(url + '/metrics').read().decode()
families = list(text_string_to_metric_families(text))
found = {(s.name, s.labels.get('rule'), s.labels.get('result')): s.value
    for family in families for s in family.samples}
for family in families:
    series = {}
    for s in family.samples if family.type == 'histogram' else []:
        of = {name: value for name, value in s.labels.items() if name != 'le'}
        series.setdefault(json.dumps(of), []).append(s)
    for *buckets, total, count in series.values():
        bounds, counts = [float(s.labels['le']) for s in buckets], [s.value for s in buckets]
        assert bounds == sorted(set(bounds)) and bounds[-1] == float('inf'), text
        assert counts == sorted(counts) and counts[-1] == count.value, text
        assert total.name.endswith('_sum') and count.name.endswith('_count'), text
assert any(family.type == 'histogram' and family.samples for family in families), text
assert found['slidegate_decisions_total', 'api', 'allowed'] == 6, text
assert found['slidegate_hits_total', 'api', None] == 42, text
assert found['slidegate_keys', None, None] == 1, text
assert 'alice' not in text
top = json.load(urllib.request.urlopen(url + '/v1/top?n=1'))
assert top == {'allowed': [{'rule': 'api', 'key': 'alice', 'count': 6, 'error': 0}], 'denied': []}, top
";
    let output = tool("python3")
        .args(["-c", script, &format!("http://{}", server.address)])
        .output()
        .expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
