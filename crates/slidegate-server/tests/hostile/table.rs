//! The table of attacks, on the terminal and in docs/reliability.md.

use std::fs;
use std::path::Path;

use crate::attack::Outcome;

const BEGIN: &str = "<!-- hostile: begin -->\n";
const END: &str = "<!-- hostile: end -->\n";

/// A table in Markdown.
pub(crate) fn markdown(outcomes: &[Outcome]) -> String {
    let rows = outcomes.iter().map(|Outcome { attack, tried, seconds }| {
        let tried = tried.as_deref().unwrap_or("**did not hold**");
        format!("| {} | {tried} | {} | {seconds} |\n", attack.name, attack.holds)
    });
    format!("| attack | tried | what held | s |\n|---|---|---|--:|\n{}", rows.collect::<String>())
}

/// Replaces the table of the page.
pub(crate) fn publish(outcomes: &[Outcome]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md");
    let text = fs::read_to_string(&page).expect("docs/reliability.md is there");
    let (before, rest) = text.split_once(BEGIN).expect("the page has the mark that begins the table");
    let (_, after) = rest.split_once(END).expect("the page has the mark that ends the table");
    let table = markdown(outcomes);
    fs::write(&page, format!("{before}{BEGIN}\n{table}\n{END}{after}")).expect("the page can be written");
}
