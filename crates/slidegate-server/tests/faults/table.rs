//! The tables of trials, on the terminal and in docs/outages.md.

use std::fs;
use std::path::Path;

use crate::matrix::Measured;
use crate::timings::shown_ms;
use crate::trial::{Outcome, Result};

const BEGIN: &str = "<!-- faults: begin -->\n";
const END: &str = "<!-- faults: end -->\n";

const FAULTS_HEAD: [&str; 2] = [
    "| fault | `cause` | requests | longest, ms | breaker open: p99, ms | calls that reached the store | recovery, ms |",
    "|---|---|--:|--:|--:|--:|--:|",
];
const OTHERS_HEAD: [&str; 2] = ["| trial | result |", "|---|---|"];

/// A table of the faults, and one of all other trials, in Markdown.
pub(crate) fn markdown(outcomes: &[Outcome]) -> String {
    let (mut faults, mut others) = (Vec::new(), Vec::new());
    for Outcome { name, result } in outcomes {
        match result {
            None => others.push(format!("| {name} | **did not hold** |")),
            Some(Result::Text(text)) => others.push(format!("| {name} | {text} |")),
            Some(Result::Measured(measured)) => faults.push(row(name, measured)),
        }
    }
    let tables =
        [(FAULTS_HEAD, faults), (OTHERS_HEAD, others)].into_iter().filter(|(_, rows)| !rows.is_empty());
    let tables = tables.map(|(head, rows)| format!("{}\n{}\n", head.join("\n"), rows.join("\n")));
    tables.collect::<Vec<_>>().join("\n")
}

fn row(name: &str, measured: &Measured) -> String {
    let Measured { causes, requests, longest, open_p99, calls, recovered_after } = measured;
    let causes: Vec<String> = causes.iter().map(|cause| format!("`{cause}`")).collect();
    let open = open_p99.map_or_else(|| "stays closed".to_owned(), shown_ms);
    let calls = calls.map_or_else(|| "-".to_owned(), |calls| calls.to_string());
    let (longest, recovery) = (shown_ms(*longest), shown_ms(*recovered_after));
    format!("| {name} | {} | {requests} | {longest} | {open} | {calls} | {recovery} |", causes.join(", "))
}

/// Replaces the tables of the page.
pub(crate) fn publish(outcomes: &[Outcome]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/outages.md");
    let text = fs::read_to_string(&page).expect("docs/outages.md is there");
    let (before, rest) = text.split_once(BEGIN).expect("the page has the mark that begins the tables");
    let (_, after) = rest.split_once(END).expect("the page has the mark that ends the tables");
    let tables = markdown(outcomes);
    fs::write(&page, format!("{before}{BEGIN}\n{tables}\n{END}{after}")).expect("the page can be written");
}
