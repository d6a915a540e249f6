//! The tables of trials, on the terminal and in docs/outages.md.

use std::fs;
use std::path::Path;

use crate::timings::shown_ms;
use crate::trial::{Outcome, Result};

const BEGIN: &str = "<!-- faults: begin -->\n";
const END: &str = "<!-- faults: end -->\n";

/// A table of the faults, and one of all other trials, in Markdown.
pub(crate) fn markdown(outcomes: &[Outcome]) -> String {
    let (mut faults, mut others) = (String::new(), String::new());
    for Outcome { name, result } in outcomes {
        match result {
            None => faults += &format!("| {name} | **did not hold** | | | | | |\n"),
            Some(Result::Text(text)) => others += &format!("| {name} | {text} |\n"),
            Some(Result::Measured(measured)) => {
                let open = measured.open_p99.map_or_else(|| "stays closed".to_owned(), shown_ms);
                faults += &format!(
                    "| {name} | {} | {} | {} | {open} | {} | {} |\n",
                    measured.causes.iter().map(|cause| format!("`{cause}`")).collect::<Vec<_>>().join(", "),
                    measured.requests,
                    shown_ms(measured.longest),
                    measured.calls.map_or_else(|| "-".to_owned(), |calls| calls.to_string()),
                    shown_ms(measured.recovered_after),
                );
            }
        }
    }
    let mut text = String::new();
    if !faults.is_empty() {
        text += "| fault | `cause` | requests | longest, ms | breaker open: p99, ms | calls that reached the store | recovery, ms |\n";
        text += "|---|---|--:|--:|--:|--:|--:|\n";
        text += &faults;
    }
    if !others.is_empty() {
        if !faults.is_empty() {
            text.push('\n');
        }
        text += "| trial | result |\n|---|---|\n";
        text += &others;
    }
    text
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
