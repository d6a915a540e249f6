//! The part of a page that a benchmark writes, between two marks.

use anyhow::{Context, Result, bail, ensure};

/// A generated block of a page; the rest of the page is written by hand.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// The page, from the root of the repository.
    pub page: &'static str,
    /// The name in the marks.
    pub name: &'static str,
    /// A page without the block gets it in a new section before this line.
    pub before: &'static str,
    /// The heading of that section.
    pub section: &'static str,
}

impl Block {
    fn begin(&self) -> String {
        format!("<!-- {}: begin -->\n", self.name)
    }

    fn end(&self) -> String {
        format!("<!-- {}: end -->\n", self.name)
    }

    /// The text between the marks; `None` if there are none.
    pub fn content<'a>(&self, text: &'a str) -> Result<Option<&'a str>> {
        let (begin, end) = (self.begin(), self.end());
        match (text.split_once(&begin), text.contains(&end)) {
            (None, false) => Ok(None),
            (Some((_, after)), true) => {
                let between = after.split_once(&end).map(|(between, _)| between);
                Ok(Some(between.with_context(|| format!("{}: the block ends before it begins", self.page))?))
            }
            (Some(_), false) => bail!("{}: `{}` is missing", self.page, end.trim_end()),
            (None, true) => bail!("{}: `{}` is missing", self.page, begin.trim_end()),
        }
    }

    /// The page with this content in the block.
    pub fn inserted(&self, text: &str, content: &str) -> Result<String> {
        let (begin, end) = (self.begin(), self.end());
        let fresh = format!("{begin}{}{end}", spaced(content));
        if let Some(shown) = self.content(text)? {
            return Ok(text.replacen(&format!("{begin}{shown}{end}"), &fresh, 1));
        }
        ensure!(text.contains(self.before), "{} has neither the marks nor a place for them", self.page);
        Ok(text.replacen(self.before, &format!("{}\n{fresh}\n{}", self.section, self.before), 1))
    }

    /// Why a page does not show this content; without content there must be no block.
    #[must_use]
    pub fn mismatch(&self, text: &str, content: Option<&str>) -> Option<String> {
        let page = self.page;
        match (self.content(text), content) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(None), None) => None,
            (Ok(Some(_)), None) => Some(format!("{page} shows figures that no committed sample has")),
            (Ok(None), Some(_)) => Some(format!("{page} does not show the committed samples")),
            (Ok(Some(shown)), Some(content)) => {
                let right = spaced(content);
                (shown != right).then(|| format!("{page} shows\n{shown}\nbut measured was\n{right}"))
            }
        }
    }
}

/// Blank lines around the content: Markdown needs them between the marks and a table.
fn spaced(content: &str) -> String {
    format!("\n{content}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Block =
        Block { page: "README.md", name: "bench core", before: "## State\n", section: "## Speed\n" };
    const README: &str = "# slidegate\n\n## State\n\nHere now.\n";

    #[test]
    fn missing_and_stale_blocks_are_found() {
        let shown = BLOCK.inserted(README, "old\n").unwrap();
        assert_eq!(BLOCK.mismatch(README, None), None);
        assert_eq!(BLOCK.mismatch(&shown, Some("old\n")), None);
        for (page, content) in [
            (shown.as_str(), None),
            (README, Some("old\n")),
            (&shown, Some("new\n")),
            (&shown.replace(&BLOCK.end(), ""), Some("old\n")),
        ] {
            assert!(BLOCK.mismatch(page, content).is_some(), "{content:?} in {page}");
        }
    }

    #[test]
    fn only_the_block_is_replaced() {
        let first = BLOCK.inserted(README, "old\n").unwrap();
        let (begin, end) = (BLOCK.begin(), BLOCK.end());
        assert_eq!(
            first,
            format!("# slidegate\n\n## Speed\n\n{begin}\nold\n\n{end}\n## State\n\nHere now.\n")
        );
        assert_eq!(BLOCK.inserted(&first, "new\n").unwrap(), first.replace("old", "new"));
        assert!(BLOCK.inserted("# another\n", "new\n").is_err());
    }
}
