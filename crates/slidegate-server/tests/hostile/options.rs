//! The arguments of this program.

use crate::attack::Plan;

const USAGE: &str = "give --full, --only NAME, --seed NUMBER, --table or --list";

#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) plan: Plan,
    /// Writes the table of docs/reliability.md.
    pub(crate) table: bool,
    pub(crate) list: bool,
    filters: Vec<String>,
}

impl Options {
    /// Words without dashes choose attacks, as in other test programs.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut options, mut args) = (Self::default(), args);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--full" => options.plan.full = true,
                "--table" => options.table = true,
                "--list" => options.list = true,
                "--nocapture" => {}
                "--only" => {
                    let name =
                        args.next().ok_or("--only: needs the name of an attack; --list prints them")?;
                    if !crate::ATTACKS.iter().any(|attack| attack.name.contains(&name)) {
                        return Err(format!("--only: no attack is named `{name}`; --list prints them"));
                    }
                    options.filters.push(name);
                }
                "--seed" => {
                    let seed = args.next().and_then(|seed| seed.parse().ok());
                    options.plan.seed = seed.ok_or("--seed: needs a number")?;
                }
                word if !word.starts_with('-') => options.filters.push(arg),
                _ => return Err(format!("`{arg}` is unknown; {USAGE}")),
            }
        }
        if options.table && !(options.plan.full && options.filters.is_empty()) {
            return Err("--table: shows all attacks in full; give --full, and choose none".to_owned());
        }
        Ok(options)
    }

    /// Whether an attack was chosen; all are if none was.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}
