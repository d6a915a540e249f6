//! The server starts while its store is gone, and the store comes later.

use serde_json::json;

use crate::faults::Target;
use crate::matrix::{RATE, configuration};
use crate::observe::{check, stop, until};
use crate::options::Plan;
use crate::program::run;
use crate::proxy::Mode;
use crate::server_process::ServerProcess;
use crate::trial::Text;

pub(crate) const TRIAL: Text = trial;

fn trial(_plan: &Plan) -> String {
    let mut target = Target::start();
    target.proxy.set(Mode::Refuse);
    let (config, url) = (configuration(RATE), target.proxy.url());
    let server = ServerProcess::start(&["--config", &config, "--store", &url]);
    let mut client = server.connect();
    let ready = server.ask("GET", "/readyz?verbose", "");
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(ready.body.ends_with("not ready: store (unavailable)\n"), "{ready:?}");
    let port = target.proxy.port().to_string();
    assert!(!ready.body.contains(&port), "{ready:?}");
    assert_eq!(check(&mut client, "strict", "alice").status, 503);
    let open = check(&mut client, "open", "alice");
    assert_eq!((open.status, &open.json()["cause"]), (200, &json!("unavailable")));
    assert_eq!(check(&mut client, "share", "alice").json()["limit"], 250_000);
    let refund = client.ask("POST", "/v1/refund", r#"{"receipt":"AAAA"}"#);
    assert!([400, 503].contains(&refund.status), "{refund:?}");

    for (policy, code) in [("deny", 2), ("allow", 0)] {
        let asked = run(
            &["check", "alice", "--limit", "5/1m", "--store", &url, "--on-store-error", policy, "--json"],
            "",
        );
        assert_eq!(asked.code, code, "{asked:?}");
    }

    target.proxy.set(Mode::Forward);
    until("the store is used", || server.ask("GET", "/readyz", "").status == 200);
    until("a check is admitted", || check(&mut client, "strict", "alice").status == 200);
    let admitted = check(&mut client, "strict", "alice").json();
    let refund = json!({ "receipt": admitted["receipt"] }).to_string();
    let refunded = client.ask("POST", "/v1/refund", &refund);
    assert_eq!(refunded.body, r#"{"applied":true,"units":1}"#, "{admitted}");
    let log = stop(server);
    assert_eq!(log.matches("the store fails").count(), 1, "{log}");
    "the server started, answered by policy, was not ready, and was ready when the store came; its receipts are good".to_owned()
}
