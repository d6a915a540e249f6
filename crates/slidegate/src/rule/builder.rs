//! The rule and its builder.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Algorithm, AtBudget, Decimal, LIMITS_MAX, Limit, NAME_BYTES_MAX, OnStoreError, RuleError, SHARDS_MAX,
    TakeOver,
};
use crate::rate::Rate;

/// A named limit, or several that must all admit, with the policies that go with them.
///
/// ```
/// use slidegate::{Algorithm, Rule};
///
/// let rule = Rule::builder("yt-quota").limit("10000/24h".parse()?).headroom("0.05".parse()?).build()?;
/// assert_eq!(rule.limits()[0].units(), 9_500);
/// assert_eq!(rule.limits()[0].algorithm(), Algorithm::SlidingLog);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rule {
    name: Box<str>,
    /// The hash of the name: stores look up states by it.
    name_hash: NameHash,
    /// The number of this rule and its clones, in this process.
    id: u64,
    limits: Box<[Limit]>,
    /// The smallest number of units that any limit enforces.
    cost_max: u64,
    headroom: Decimal,
    shadow: bool,
    on_store_error: OnStoreError,
    at_budget: AtBudget,
    take_over: Option<TakeOver>,
    shards: u16,
    /// The rule of each shard, if there are several.
    of_shard: Option<Box<Rule>>,
}

/// All but the id: two rules that were built from the same settings are equal.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            name,
            name_hash: _,
            id: _,
            limits,
            cost_max: _,
            headroom,
            shadow,
            on_store_error,
            at_budget,
            take_over,
            shards,
            of_shard: _,
        } = self;
        (name, limits, headroom, shadow, on_store_error, at_budget, take_over, shards)
            == (
                &other.name,
                &other.limits,
                &other.headroom,
                &other.shadow,
                &other.on_store_error,
                &other.at_budget,
                &other.take_over,
                &other.shards,
            )
    }
}

impl Eq for Rule {}

/// A hash of a rule's name: the same for all rules of that name in this process, and for no others, as 128
/// bits do not collide by chance.
pub(crate) type NameHash = (u64, u64);

pub(crate) fn name_hash(name: &str) -> NameHash {
    let half = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (number, name).hash(&mut hasher);
        hasher.finish()
    };
    (half(0), half(1))
}

impl Rule {
    /// A rule of one limit, written `LIMIT/WINDOW`, with the default algorithm and policies.
    ///
    /// ```
    /// use slidegate::Rule;
    ///
    /// let login = Rule::new("login", "5/1m")?;
    /// assert_eq!((login.name(), login.cost_max()), ("login", 5));
    /// assert!(Rule::new("login", "5 per minute").is_err());
    /// # Ok::<(), slidegate::RuleError>(())
    /// ```
    pub fn new(name: &str, rate: &str) -> Result<Self, RuleError> {
        let rate = rate.parse().map_err(|error| RuleError::Rate { rule: name.to_owned(), error })?;
        Self::builder(name).limit(rate).build()
    }

    /// Starts a rule of that name.
    #[must_use]
    pub fn builder(name: &str) -> RuleBuilder {
        RuleBuilder { rule: Self::without_limits(name), rates: Vec::new(), algorithm: Algorithm::default() }
    }

    /// A rule with default settings and no limits yet.
    fn without_limits(name: &str) -> Self {
        Self {
            name: name.into(),
            name_hash: name_hash(name),
            id: 0,
            limits: Box::default(),
            cost_max: 0,
            headroom: Decimal::ZERO,
            shadow: false,
            on_store_error: OnStoreError::default(),
            at_budget: AtBudget::default(),
            take_over: None,
            shards: 1,
            of_shard: None,
        }
    }

    /// A rule given with the request itself, named after its algorithm and window: `sliding-log/60s`.
    ///
    /// Another limit therefore keeps the state; another window or algorithm is another state.
    ///
    /// ```
    /// use slidegate::{Algorithm, Rule};
    ///
    /// let rule = Rule::inline("9500/24h".parse()?, Algorithm::SlidingLog);
    /// assert_eq!(rule.name(), "sliding-log/86400s");
    /// # Ok::<(), slidegate::RateError>(())
    /// ```
    #[must_use]
    pub fn inline(rate: Rate, algorithm: Algorithm) -> Self {
        let window_ms = rate.window_us() / 1_000;
        let window =
            if window_ms % 1_000 == 0 { format!("{}s", window_ms / 1_000) } else { format!("{window_ms}ms") };
        let limits = [Limit::new(rate, Decimal::ZERO, algorithm)].into();
        Self::without_limits(&format!("{}/{window}", algorithm.name())).with_limits(limits)
    }

    /// Whether a name is reserved for [`Rule::inline`]: it begins with the name of an algorithm and a slash.
    /// [`RuleBuilder::build`] rejects such names, so that no other rule shares a state with an inline rule.
    ///
    /// ```
    /// use slidegate::Rule;
    ///
    /// assert!(Rule::is_inline_name("sliding-log/60s"));
    /// assert!(!Rule::is_inline_name("/login"));
    /// assert!(!Rule::is_inline_name("sliding-log"));
    /// ```
    #[must_use]
    pub fn is_inline_name(name: &str) -> bool {
        inline_prefix(name).is_some()
    }

    /// The same rule with other rates: what a live change of the limit installs.
    ///
    /// ```
    /// use slidegate::Rule;
    ///
    /// let rule = Rule::builder("api").limit("5/1m".parse()?).build()?;
    /// assert_eq!(rule.with_rates(&["7/1m".parse()?])?.limits()[0].units(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_rates(&self, rates: &[Rate]) -> Result<Self, RuleError> {
        self.clone().limited(rates, self.algorithm())
    }

    /// The same rule enforcing a share of each limit, rounded down and at least 1. It has no shards.
    pub(crate) fn at_share(&self, share: Decimal) -> Self {
        let limits = self.limits.iter().map(|limit| limit.at_share(share)).collect();
        Self { shards: 1, of_shard: None, ..self.clone() }.with_limits(limits)
    }

    fn limited(self, rates: &[Rate], algorithm: Algorithm) -> Result<Self, RuleError> {
        let rule = || self.name.to_string();
        if rates.is_empty() || rates.len() > LIMITS_MAX {
            return Err(RuleError::LimitCount { rule: rule(), count: rates.len() });
        }
        if self.headroom == Decimal::ONE {
            return Err(RuleError::Headroom { rule: rule() });
        }
        let has_one_set = algorithm == Algorithm::SlidingLog && rates.len() == 1 && self.shards == 1;
        if self.take_over.is_some() && !has_one_set {
            return Err(RuleError::TakeOver { rule: rule() });
        }
        for (index, rate) in rates.iter().enumerate() {
            if let Some(twin) = rates[..index].iter().find(|other| other.window_us() == rate.window_us()) {
                return Err(RuleError::DuplicateWindow { rule: rule(), first: *twin, second: *rate });
            }
        }
        let limits: Box<[Limit]> =
            rates.iter().map(|&rate| Limit::new(rate, self.headroom, algorithm)).collect();
        let of_shard = self.rule_of_shard(&limits)?;
        Ok(Self { of_shard, ..self.with_limits(limits) })
    }

    /// The rule of each shard for these limits of the whole; `None` if it is not split.
    fn rule_of_shard(&self, limits: &[Limit]) -> Result<Option<Box<Self>>, RuleError> {
        let (rule, shards) = (|| self.name.to_string(), self.shards);
        if !(1..=SHARDS_MAX).contains(&shards) {
            return Err(RuleError::ShardCount { rule: rule(), shards });
        }
        let part = |limit: &Limit| {
            let (rate, units) = (limit.rate(), limit.units());
            limit.of_shard(shards).ok_or_else(|| RuleError::ShardUnits { rule: rule(), shards, rate, units })
        };
        let limits = limits.iter().map(part).collect::<Result<_, _>>()?;
        let of_shard = || {
            let part = Self { shards: 1, of_shard: None, ..self.clone() };
            part.with_limits(limits)
        };
        Ok((shards > 1).then(|| Box::new(of_shard())))
    }

    /// The same rule with other limits, and so with another id.
    fn with_limits(self, limits: Box<[Limit]>) -> Self {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        let cost_max = limits.iter().map(Limit::units).min().expect("a rule has at least one limit");
        Self { id, limits, cost_max, ..self }
    }

    /// The name: with a key it identifies a state.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    pub(crate) fn name_hash(&self) -> NameHash {
        self.name_hash
    }

    /// Not 0. Rules with the same id have the same name and limits: a store that has seen one need not compare them.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The limits, at least one; all must admit. No two have the same window.
    #[must_use]
    #[inline]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The algorithm of its windows.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.limits[0].algorithm()
    }

    /// The smallest number of units that any of its limits enforces: a larger cost never passes.
    #[must_use]
    #[inline]
    pub fn cost_max(&self) -> u64 {
        self.cost_max
    }

    /// The share of each limit that is held back.
    #[must_use]
    pub fn headroom(&self) -> Decimal {
        self.headroom
    }

    /// Whether it is a shadow rule: it decides and counts, but never denies.
    #[must_use]
    pub fn shadow(&self) -> bool {
        self.shadow
    }

    /// The outage policy.
    #[must_use]
    pub fn on_store_error(&self) -> OnStoreError {
        self.on_store_error
    }

    /// What happens when the store's memory is spent and a new key or a growing log needs more.
    #[must_use]
    pub fn at_budget(&self) -> AtBudget {
        self.at_budget
    }

    /// The unit of the times in the sets of another limiter that a shared store takes over.
    #[must_use]
    pub fn take_over(&self) -> Option<TakeOver> {
        self.take_over
    }

    /// Into how many shards a store that [splits hot keys](crate::store::Store::splits_keys) splits a key; 1 for none.
    #[must_use]
    #[inline]
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// The rule of each shard: the same with an equal part of every limit, rounded down. `None` without shards.
    #[must_use]
    #[inline]
    pub fn of_shard(&self) -> Option<&Self> {
        self.of_shard.as_deref()
    }
}

/// Collects the settings of a rule; [`RuleBuilder::build`] checks them.
#[derive(Debug, Clone)]
pub struct RuleBuilder {
    /// Not checked yet.
    rule: Rule,
    rates: Vec<Rate>,
    algorithm: Algorithm,
}

impl RuleBuilder {
    /// Adds a limit; with several, all must admit.
    #[must_use]
    pub fn limit(mut self, rate: Rate) -> Self {
        self.rates.push(rate);
        self
    }

    /// Chooses the algorithm; `sliding-log` by default.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Holds back a share of each limit, so that our refusal comes before the upstream's; 0 by default.
    #[must_use]
    pub fn headroom(mut self, headroom: Decimal) -> Self {
        self.rule.headroom = headroom;
        self
    }

    /// Decides and counts, but takes no part in the verdict.
    #[must_use]
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.rule.shadow = shadow;
        self
    }

    /// The outage policy; [`OnStoreError::Deny`] by default.
    #[must_use]
    pub fn on_store_error(mut self, policy: OnStoreError) -> Self {
        self.rule.on_store_error = policy;
        self
    }

    /// What happens when the store's memory is spent and a new key or a growing log needs more; [`AtBudget::Refuse`] by
    /// default.
    #[must_use]
    pub fn at_budget(mut self, policy: AtBudget) -> Self {
        self.rule.at_budget = policy;
        self
    }

    /// Takes over the sets of another limiter, whose times are in that unit. For `sliding-log` with one limit and without
    /// shards, on a store that keeps it as sorted sets.
    #[must_use]
    pub fn take_over(mut self, unit: TakeOver) -> Self {
        self.rule.take_over = Some(unit);
        self
    }

    /// Splits each key into so many shards, 1 to [`SHARDS_MAX`], on a store that
    /// [splits keys](crate::store::Store::splits_keys), as Redis does; other stores ignore it. 1 by default.
    ///
    /// For a key that is too busy for one Redis, or for one node of a Cluster. Each request is charged to a shard that is
    /// drawn at random, and one that is denied there tries a second. A shard has an equal part of every limit, rounded
    /// down: never over, but a key is denied a little early, as the requests are not spread evenly; and a larger cost
    /// never passes.
    ///
    /// ```
    /// use slidegate::Rule;
    ///
    /// let hot = Rule::builder("hot").limit("10/1s".parse()?).shards(4).build()?;
    /// assert_eq!(hot.of_shard().map(Rule::cost_max), Some(2));
    /// assert!(Rule::builder("hot").limit("3/1s".parse()?).shards(4).build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shards(mut self, shards: u16) -> Self {
        self.rule.shards = shards;
        self
    }

    /// Checks everything and makes the rule.
    pub fn build(self) -> Result<Rule, RuleError> {
        let name = &*self.rule.name;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(RuleError::NameLength { bytes: name.len() });
        }
        if let Some(character) = name.chars().find(|&c| !c.is_ascii_graphic() || "\"\\{}".contains(c)) {
            return Err(RuleError::NameCharacter { name: name.to_owned(), character });
        }
        if let Some(algorithm) = inline_prefix(name) {
            return Err(RuleError::NameReserved { name: name.to_owned(), algorithm });
        }
        self.rule.limited(&self.rates, self.algorithm)
    }
}

/// The algorithm, if the name begins with an algorithm's name and a slash.
fn inline_prefix(name: &str) -> Option<&'static str> {
    let (first, _) = name.split_once('/')?;
    Algorithm::ALL.map(Algorithm::name).into_iter().find(|algorithm| *algorithm == first)
}

#[cfg(test)]
mod tests {
    use super::super::{Buckets, Edge};
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn headroom_is_exact_and_leaves_one_unit() {
        let enforced = |limit: &str, headroom: &str| {
            let rule = Rule::builder("r").limit(rate(limit)).headroom(headroom.parse().unwrap());
            rule.build().unwrap().limits()[0].units()
        };
        assert_eq!(enforced("10000/24h", "0.05"), 9_500);
        assert_eq!(enforced("10/1s", "0.01"), 9, "the part held back is rounded up");
        assert_eq!(enforced("1/1s", "0.999999"), 1);
        assert_eq!(enforced("1000000000000/1s", "0.000001"), 999_999_000_000);
        assert_eq!(enforced("7/1s", "0"), 7);
    }

    #[test]
    fn invalid_rules_cannot_be_built() {
        let error = |builder: RuleBuilder| builder.build().unwrap_err().to_string();
        let named = |name: &str| Rule::builder(name).limit(rate("5/1m"));
        assert!(error(named("")).contains("0 bytes"));
        assert!(error(named(&"n".repeat(129))).contains("129 bytes"));
        assert!(error(named("a b")).contains("' '"));
        assert!(error(named("/\"login\"")).contains("'\"'"));
        assert!(error(named("käse")).contains("'ä'"));
        assert!(error(Rule::builder("r")).contains("limits: 0 given"));
        assert!(error(named("r").limit(rate("6/60s"))).contains("5/1m and 6/1m have the same window"));
        assert!(error(named("r").headroom(Decimal::ONE)).contains("headroom: 1"));
        let many = (1..=17).fold(Rule::builder("r"), |b, i| b.limit(rate(&format!("5/{i}s"))));
        assert!(error(many).contains("17 given"));
    }

    #[test]
    fn only_a_log_with_one_limit_takes_over_sets() {
        let migrating = || Rule::builder("r").limit(rate("5/1m")).take_over(TakeOver::Milliseconds);
        let rule = migrating().build().unwrap();
        assert_eq!(rule.take_over(), Some(TakeOver::Milliseconds));
        assert_ne!(rule, Rule::builder("r").limit(rate("5/1m")).build().unwrap());
        assert_eq!(rule.with_rates(&[rate("7/1m")]).unwrap().take_over(), rule.take_over());
        let wrong = Err(RuleError::TakeOver { rule: "r".to_owned() });
        assert_eq!(migrating().limit(rate("60/1h")).build(), wrong);
        assert_eq!(migrating().algorithm(Algorithm::Gcra).build(), wrong);
        assert_eq!(migrating().shards(2).build(), wrong, "a shard has another name than the set");
        assert_eq!(rule.with_rates(&[rate("7/1m"), rate("60/1h")]), wrong);
    }

    #[test]
    fn names_may_be_paths_but_not_those_of_inline_rules() {
        let named = |name: &str| Rule::builder(name).limit(rate("5/1m")).build();
        for name in
            ["/login", "/v1/users/:id", "a/b", "/", "x/gcra/1", "sliding-log", "gcra2/60s", "/gcra/60s"]
        {
            assert_eq!(named(name).unwrap().name(), name);
            assert!(!Rule::is_inline_name(name), "{name}");
        }
        for algorithm in Algorithm::ALL {
            for rest in ["60s", "", "login", "60s/x"] {
                let name = format!("{}/{rest}", algorithm.name());
                let error = named(&name).unwrap_err();
                assert_eq!(
                    error,
                    RuleError::NameReserved { name: name.clone(), algorithm: algorithm.name() }
                );
                assert!(Rule::is_inline_name(&name), "{name}");
            }
            assert!(Rule::is_inline_name(Rule::inline(rate("5/1m"), algorithm).name()));
        }
        assert_eq!(
            named("gcra/login").unwrap_err().to_string(),
            "rule `gcra/login`: the name begins with `gcra/`, which belongs to inline rules; choose another beginning, \
             for example `/gcra/login`"
        );
    }

    #[test]
    fn inline_names_contain_the_algorithm_and_window() {
        let name = |text, algorithm| Rule::inline(rate(text), algorithm).name().to_owned();
        assert_eq!(name("5/60s", Algorithm::SlidingLog), "sliding-log/60s");
        assert_eq!(name("500/1m", Algorithm::SlidingLog), "sliding-log/60s");
        assert_eq!(name("5/1500ms", Algorithm::Gcra), "gcra/1500ms");
        let thirty = Algorithm::SlidingBuckets(Buckets::new(30).unwrap(), Edge::Full);
        assert_eq!(name("5/60s", thirty), "sliding-buckets/60s", "another bucket count is a live change");
    }

    #[test]
    fn every_limit_is_divided_among_the_shards() {
        let built = |shards: u16, limits: &[&str]| {
            let builder = Rule::builder("r").headroom("0.1".parse().unwrap()).shards(shards);
            limits.iter().fold(builder, |builder, limit| builder.limit(rate(limit))).build()
        };
        let rule = built(4, &["100/1s", "50/1m"]).unwrap();
        let shard = rule.of_shard().unwrap();
        let units: Vec<u64> = shard.limits().iter().map(Limit::units).collect();
        assert_eq!((units, shard.name(), shard.shards()), (vec![22, 11], "r", 1), "90 and 45 after headroom");
        assert_ne!(shard.id(), rule.id());
        assert_eq!(rule.with_rates(&[rate("40/1s")]).unwrap().of_shard().unwrap().cost_max(), 9);
        assert!(rule.at_share("0.5".parse().unwrap()).of_shard().is_none(), "a process splits nothing");
        assert!(built(1, &["1/1s"]).unwrap().of_shard().is_none());
        assert!(built(256, &["300/1s"]).is_ok());
        for (shards, limits, words) in [
            (0, &["100/1s"][..], "shards: 0 given; give 1 to 256"),
            (257, &["1000/1s"], "shards: 257 given"),
            (10, &["100/1s", "10/1m"], "shards: 10 leave none of the 9 units of 10/1m to each shard"),
        ] {
            let error = built(shards, limits).unwrap_err().to_string();
            assert!(error.starts_with("rule `r`: ") && error.contains(words), "{error}");
        }
        let changed = rule.with_rates(&[rate("4/1s")]).unwrap_err();
        assert!(matches!(changed, RuleError::ShardUnits { units: 3, shards: 4, .. }), "{changed}");
    }

    #[test]
    fn the_largest_cost_is_the_smallest_limit() {
        let rule = Rule::builder("r").limit(rate("100/5m")).limit(rate("5/1s")).build().unwrap();
        assert_eq!(rule.cost_max(), 5);
    }
}
