//! The arguments of this program.

const USAGE: &str = "give --full, --only NAME, --seed NUMBER, --table or --list";

#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) plan: Plan,
    /// Writes the tables of docs/outages.md.
    pub(crate) table: bool,
    pub(crate) list: bool,
    filters: Vec<String>,
}

/// The size and the random choices of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    pub(crate) full: bool,
    pub(crate) seed: u64,
}

impl Plan {
    /// A number for the short form, and one for the full form.
    pub(crate) fn size<T>(&self, short: T, full: T) -> T {
        if self.full { full } else { short }
    }
}

impl Options {
    /// Words without dashes choose trials, as in other test programs.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut options, mut args) = (Self::default(), args);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--full" => options.plan.full = true,
                "--table" => options.table = true,
                "--list" => options.list = true,
                "--nocapture" => {}
                "--only" => {
                    let name = args.next().ok_or("--only: needs the name of a trial; --list prints them")?;
                    if !crate::trials().iter().any(|trial| trial.name.contains(&name)) {
                        return Err(format!("--only: no trial is named `{name}`; --list prints them"));
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
            return Err("--table: shows all trials in full; give --full, and choose none".to_owned());
        }
        Ok(options)
    }

    /// Whether a trial was chosen; all are if none was.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}
