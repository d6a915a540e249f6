//! The store. Every verb is one script call; in a cluster one per hash slot, see `cross_slot`.

mod cross_slot;

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slidegate::algorithm::State;
use slidegate::receipt::{ReceiptCharge, ReceiptId, ReceiptStamp};
use slidegate::store::{
    Call, LimitUsage, RefusalCause, SECRET_BYTES, Store, StoreError, Update, UpdateError,
};
use slidegate::{Admission, Applied, Charge, Decision, Key, Receipt, ReceiptError, Rule};

use crate::call_error::CallError;
use crate::connections::Connections;
use crate::decode::{self, ReplyReader};
use crate::encode::Args;
use crate::keys::{KeyTemplate, spent_name};
use crate::link::{BATCH_CALLS_MAX, ConnectError, Link, OpenError, ScriptCall};
use crate::options::{LogLayout, RedisOptions};
use crate::scripts::{self, Script};
use crate::shards::{Charging, rule_of};

/// The suffix of the value beside sorted sets.
const SETS_VALUE_SUFFIX: &[u8] = b"%state";
/// The most secrets that Redis keeps, as `secret.lua` has it.
const SECRETS_MAX: usize = 8;
/// Bits of the number drawn for a call: six bytes, and exact as a double in Lua.
const NONCE_BITS: u32 = 48;

/// A store shared by all processes with the same Redis and the same key template.
///
/// Its clock is the server's. Every verb is one call of a script, in which everything is read and checked before
/// anything is written; a change of a rule is one call per key.
///
/// A call ends by its [deadline](Call::deadline), or by that of [the options](RedisOptions::deadline). A call that was
/// not sent by then is never sent, and fails with [`StoreError::Unavailable`]. One that was sent fails with
/// [`StoreError::Ambiguous`].
#[derive(Debug)]
pub struct RedisStore {
    pub(crate) link: Connections,
    pub(crate) keys: KeyTemplate,
    layout: LogLayout,
    deny_cache: Option<Duration>,
    number: u32,
    random: RandomState,
    drawn: AtomicU64,
    /// The latest time at which a receipt was presented: receipts that had expired by then stay expired.
    latest_us: AtomicU64,
}

/// The use that a receipt is presented for.
#[derive(Debug, Clone, Copy)]
enum ReceiptUse {
    Refund,
    Settle(u64),
    /// Only asks whether it could still be used.
    Query,
}

impl RedisStore {
    /// Opens a store in the Redis at a URL, with the default [options](RedisOptions). It opens all connections and
    /// checks the version.
    ///
    /// ```no_run
    /// use slidegate::Limiter;
    /// use slidegate_redis::RedisStore;
    ///
    /// # async fn example() -> Result<(), slidegate_redis::OpenError> {
    /// let limiter = Limiter::new(RedisStore::connect("redis://localhost").await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Ok(Self::connect_with(&RedisOptions::new(url)?).await?)
    }

    /// The same with given options.
    pub async fn connect_with(options: &RedisOptions) -> Result<Self, ConnectError> {
        Ok(Self::over(Connections::connect(options).await?, options))
    }

    /// Opens a store without waiting for its Redis, for programs that must start while it is down.
    ///
    /// Connections are opened in the background, with exponential backoff. Calls wait for the first try, by their
    /// deadline, and once it has failed they fail at once, until a connection is open. What
    /// [`RedisStore::connect_with`] finds wrong with a server, the calls fail with. An error is one that needs no server,
    /// as of the options for TLS.
    ///
    /// Connections belong to the tokio runtime that this is called on; outside of a runtime, to that of the first call.
    ///
    /// ```
    /// use slidegate::rule::OnStoreError;
    /// use slidegate::{Limiter, Rule};
    /// use slidegate_redis::{RedisOptions, RedisStore};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// // Nobody listens there.
    /// let limiter = Limiter::new(RedisStore::lazy(&RedisOptions::new("redis://127.0.0.1:1")?)?);
    /// let login = Rule::builder("login").limit("5/1m".parse()?).on_store_error(OnStoreError::Allow).build()?;
    /// let decision = limiter.check_async(&login, "alice").await?;
    /// assert!(decision.allowed() && decision.degraded());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lazy(options: &RedisOptions) -> Result<Self, ConnectError> {
        Ok(Self::over(Connections::lazy(options)?, options))
    }

    fn over(link: Connections, options: &RedisOptions) -> Self {
        let (keys, layout) = (options.keys.clone(), options.log_layout);
        let number = keys.store_number();
        let (drawn, latest_us) = (AtomicU64::new(0), AtomicU64::new(0));
        let deny_cache = options.deny_cache;
        Self { link, keys, layout, deny_cache, number, random: RandomState::new(), drawn, latest_us }
    }

    /// Draws a number that cannot be guessed, and very rarely repeats: the keyed hash of a counter.
    pub(crate) fn draw(&self) -> u64 {
        self.random.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// The keys of an admission's states.
    fn names(&self, admission: &Admission<'_>) -> Result<Vec<Vec<u8>>, StoreError> {
        let asks = admission.asks().iter();
        let names: Vec<_> = asks.map(|ask| self.keys.state(ask.rule().name(), ask.key())).collect();
        self.keys.check_distinct(&names)?;
        Ok(names)
    }

    /// The script call of asks, whose states have these keys.
    fn asks_call(
        &self,
        script: &'static Script,
        call: Call,
        asks: &[Charge<'_>],
        keys: Vec<Vec<u8>>,
    ) -> ScriptCall {
        let mut args = self.args(call);
        for ask in asks {
            args.push_charge(ask.rule(), ask.cost());
        }
        ScriptCall { script, keys, args: args.0 }
    }

    /// The script call on the state of one rule and key.
    pub(crate) fn key_call(
        &self,
        script: &'static Script,
        call: Call,
        rule: &Rule,
        key: Key<'_>,
        units: u64,
    ) -> ScriptCall {
        let mut args = self.args(call);
        args.push_charge(rule, units);
        ScriptCall { script, keys: vec![self.keys.state(rule.name(), key)], args: args.0 }
    }

    /// The script call that applies a change of a rule to one state.
    fn change_call(&self, call: Call, rule: &Rule, name: &[u8]) -> ScriptCall {
        let mut args = self.args(call);
        args.push_charge(rule, 0);
        ScriptCall { script: &scripts::CHANGE, keys: vec![name.to_vec()], args: args.0 }
    }

    /// The first arguments of every call.
    fn args(&self, call: Call) -> Args {
        Args::at(self.layout, call, self.draw() >> (u64::BITS - NONCE_BITS))
    }

    fn decision<'a>(
        &self,
        admission: &Admission<'a>,
        reply: Result<redis::Value, StoreError>,
    ) -> Result<Decision<'a>, StoreError> {
        let reply = decode::admission_reply(reply?, admission.asks())?;
        Ok(Decision::new(admission, reply.states, reply.charged.then(|| self.stamp())))
    }

    fn stamp(&self) -> ReceiptStamp {
        ReceiptStamp { id: ReceiptId::new(self.draw()), store: self.number }
    }

    /// Decides on states as they are named.
    pub(crate) async fn decide_whole<'a>(
        &self,
        charging: Charging,
        call: Call,
        admission: &Admission<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        let names = self.names(admission)?;
        let script: &'static Script = match (charging, self.link.slots(&names)) {
            (Charging::Yes, Some(slots)) => return self.check_slots(call, admission, &names, slots).await,
            (Charging::No, Some(slots)) => return self.peek_slots(call, admission, &names, slots).await,
            (Charging::Yes, None) => &scripts::BINARY_CHECK,
            (Charging::No, None) => &scripts::BINARY_PEEK,
        };
        let script_call = self.asks_call(script, call, admission.asks(), names);
        self.decision(admission, self.link.call(call.deadline(), script_call).await)
    }

    /// Checks several admissions on states as they are named.
    ///
    /// In a cluster an admission over several slots waits for those before it, and those after it wait for it.
    pub(crate) async fn check_all_whole<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let call = self.link.with_deadline(call);
        let (mut decisions, mut prepared) = (Vec::with_capacity(admissions.len()), Vec::new());
        for (number, admission) in admissions.iter().enumerate() {
            let names = self.names(admission);
            let slots = names.as_ref().ok().and_then(|names| self.link.slots(names));
            let (Ok(names), Some(slots)) = (&names, slots) else {
                let script = &scripts::BINARY_CHECK;
                prepared.push(names.map(|names| self.asks_call(script, call, admission.asks(), names)));
                continue;
            };
            let before = &admissions[decisions.len()..number];
            decisions.extend(self.check_calls(call, before, std::mem::take(&mut prepared)).await);
            decisions.push(self.check_slots(call, admission, names, slots).await);
        }
        decisions.extend(self.check_calls(call, &admissions[decisions.len()..], prepared).await);
        decisions
    }

    /// Checks admissions whose states lie in one slot each.
    async fn check_calls<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
        prepared: Vec<Result<ScriptCall, StoreError>>,
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let mut calls = Vec::with_capacity(prepared.len());
        // An admission that was refused here is not sent.
        let mut queue = |prepared: Result<_, _>| {
            calls.push(prepared?);
            Ok(())
        };
        let sent: Vec<Result<(), _>> = prepared.into_iter().map(&mut queue).collect();
        let mut replies = self.link.call_all(call.deadline(), calls).await.into_iter();
        let decide = |(admission, sent): (_, Result<(), _>)| {
            sent.and_then(|()| self.decision(admission, replies.next().expect("one reply per call")))
        };
        admissions.iter().zip(sent).map(decide).collect()
    }

    /// Presents a receipt. Returns whether that spent it, and the units that were given back or charged.
    ///
    /// In a cluster every slot has a record that it was spent, and they are asked in the order of their numbers: of two
    /// callers the one that was first at the first slot nearly always is so at the others.
    async fn present(
        &self,
        call: Call,
        receipt: &Receipt,
        receipt_use: ReceiptUse,
    ) -> Result<(bool, u64), UpdateError> {
        if receipt.store() != self.number {
            return Err(ReceiptError::Foreign.into());
        }
        let charges = receipt.charges().iter();
        let names: Vec<_> = charges.map(|charge| self.keys.state(charge.rule(), charge.key())).collect();
        let Some(slots) = self.link.slots(&names) else {
            let all: Vec<_> = receipt.charges().iter().collect();
            return Ok(self.present_charges(call, receipt, &all, names, receipt_use).await?);
        };
        let call = self.link.with_deadline(call);
        let (mut any_spent, mut units_total) = (false, 0);
        for numbers in &slots {
            let charges: Vec<_> = numbers.iter().map(|&number| &receipt.charges()[number]).collect();
            let names = numbers.iter().map(|&number| names[number].clone()).collect();
            match self.present_charges(call, receipt, &charges, names, receipt_use).await {
                Ok((spent, units)) => (any_spent, units_total) = (any_spent | spent, units_total + units),
                Err(error) if any_spent && !matches!(receipt_use, ReceiptUse::Query) => {
                    return Err(cross_slot::half_presented(&error).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok((any_spent, units_total))
    }

    /// Presents a receipt for its charges in one slot.
    async fn present_charges(
        &self,
        call: Call,
        receipt: &Receipt,
        charges: &[&ReceiptCharge],
        mut keys: Vec<Vec<u8>>,
        receipt_use: ReceiptUse,
    ) -> Result<(bool, u64), StoreError> {
        keys.push(spent_name(&keys[0], receipt.id()));
        let mut args = self.args(call);
        args.instant(State::receipt_expires_us(receipt));
        args.instant(self.latest_us.load(Ordering::Relaxed));
        match receipt_use {
            ReceiptUse::Refund => {}
            ReceiptUse::Settle(actual) => args.number(actual),
            ReceiptUse::Query => args.0.push(Vec::new()),
        }
        let refunds = matches!(receipt_use, ReceiptUse::Refund);
        let script: &'static Script = if refunds { &scripts::REFUND } else { &scripts::SETTLE };
        for charge in charges {
            args.push_receipt_charge(charge);
        }
        let script_call = ScriptCall { script, keys, args: args.0 };
        let mut reply = ReplyReader::new(self.link.call(call.deadline(), script_call).await?)?;
        let spent = reply.number()? == 1;
        self.latest_us.fetch_max(reply.instant_us()?, Ordering::Relaxed);
        Ok((spent, reply.number()?))
    }

    /// The stored secrets, among them `own` if there were none, or if receipts are signed with it.
    async fn secrets(
        &self,
        own: &[u8; SECRET_BYTES],
        has_signed: bool,
    ) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
        let name = self.keys.secret();
        let args = vec![own.to_vec(), u8::from(has_signed).to_string().into_bytes()];
        let script_call = ScriptCall { script: &scripts::SECRET, keys: vec![name.clone()], args };
        let redis::Value::BulkString(stored) = self.link.call(None, script_call).await? else {
            return Err(CallError::malformed_reply("a script").into());
        };
        match stored.as_chunks() {
            (secrets, []) if (1..=SECRETS_MAX).contains(&secrets.len()) => Ok(secrets.to_vec()),
            _ => {
                let name = String::from_utf8_lossy(&name);
                let why = format!("`{name}` has {} bytes and is no secret of ours; delete it", stored.len());
                Err(StoreError::Refused { cause: RefusalCause::ForeignValue, why: why.into() })
            }
        }
    }

    /// Applies a live change of a rule to its states on one server. In a cluster, a state that is just moving to another
    /// server may be missed: its next call takes it over.
    async fn change_states_of(
        &self,
        server: &Link,
        call: Call,
        rule: &Rule,
        pattern: &[u8],
    ) -> Result<(), StoreError> {
        let mut cursor = 0;
        loop {
            let (next, names) = server.scan(call.deadline(), pattern, cursor).await?;
            let states = names.iter().map(|name| name.strip_suffix(SETS_VALUE_SUFFIX).unwrap_or(name));
            // The pattern may match more, and a state may have two names.
            let states: BTreeSet<&[u8]> = states.collect();
            let changed = |name| {
                let key = self.keys.key_of(name, rule.name().as_bytes())?;
                Some(self.change_call(call, rule_of(rule, key.shard)?, name))
            };
            let calls: Vec<_> = states.into_iter().filter_map(changed).collect();
            for calls in calls.chunks(BATCH_CALLS_MAX) {
                for answer in self.link.call_all(call.deadline(), calls.to_vec()).await {
                    answer?;
                }
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Calls a script that gives back units of one key.
    async fn call_applied(&self, call: Call, script_call: ScriptCall) -> Result<Applied, StoreError> {
        let mut reply = ReplyReader::new(self.link.call(call.deadline(), script_call).await?)?;
        let applied = reply.number()? == 1;
        reply.instant_us()?;
        Ok(Applied { applied, units: reply.number()? })
    }
}

impl Store for RedisStore {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(Charging::Yes, call, admission).await
    }

    /// One round trip unless there are very many, with one deadline. The clock is read once per admission.
    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        self.check_all(call, admissions).await
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.decide(Charging::No, call, admission).await
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        match update {
            Update::Refund(receipt) => {
                let (spent, units) = self.present(call, receipt, ReceiptUse::Refund).await?;
                Ok(Applied { applied: spent && units > 0, units })
            }
            Update::Settle(receipt, actual) => match receipt.cost_to_settle(actual) {
                Ok(cost) => {
                    let (spent, units) = self.present(call, receipt, ReceiptUse::Settle(actual)).await?;
                    Ok(Applied { applied: spent && (units > 0 || actual == cost), units })
                }
                // A spent or expired receipt is not applied, whatever the units; only a usable one is an error.
                Err(error) => match self.present(call, receipt, ReceiptUse::Query).await? {
                    (true, _) => Err(error.into()),
                    (false, _) => Ok(Applied::default()),
                },
            },
            Update::Credit(charge) if charge.rule().of_shard().is_some() => {
                let shard = charge.rule().of_shard().expect("it was just found");
                Ok(self.credit_shards(call, shard, charge).await?)
            }
            Update::Credit(charge) => {
                let (rule, key, units) = (charge.rule(), charge.key(), charge.cost());
                Ok(self.call_applied(call, self.key_call(&scripts::CREDIT, call, rule, key, units)).await?)
            }
            Update::Reset(rule, key) if rule.of_shard().is_some() => {
                let shard = rule.of_shard().expect("it was just found");
                Ok(self.reset_shards(call, rule, shard, key).await?)
            }
            Update::Reset(rule, key) => {
                Ok(self.call_applied(call, self.key_call(&scripts::RESET, call, rule, key, 0)).await?)
            }
        }
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        if let Some(shard) = rule.of_shard() {
            return self.inspect_shards(call, rule, shard, key).await;
        }
        let script_call = self.key_call(&scripts::INSPECT, call, rule, key, 0);
        let mut reply = ReplyReader::new(self.link.call(call.deadline(), script_call).await?)?;
        reply.instant_us()?;
        let usages = rule.limits().iter().map(|&limit| {
            let (used, reset_after_us) = (reply.number()?, reply.number()?);
            Ok(LimitUsage::new(limit, used, Duration::from_micros(reset_after_us)))
        });
        usages.collect()
    }

    /// Changes the states key by key, as SCAN finds them. Charges made meanwhile under the old rule stay under it.
    ///
    /// The call's deadline counts for all keys. The deadline of the options counts for each round trip, because their
    /// number depends on how many keys Redis holds.
    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        let mut pattern = self.keys.pattern(rule.name().as_bytes());
        if self.layout == LogLayout::SortedSet {
            // A rule with several limits may have no key of the name itself.
            pattern.push(b'*');
        }
        for primary in self.link.primaries(call.deadline()).await? {
            self.change_states_of(primary.link(), call, rule, &pattern).await?;
        }
        Ok(())
    }
    fn is_remote(&self) -> bool {
        true
    }

    fn splits_keys(&self) -> bool {
        true
    }

    fn deny_cache_hold(&self) -> Option<Duration> {
        self.deny_cache
    }

    /// The first process draws it, and Redis stores it.
    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        let mut drawn = [0; SECRET_BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut drawn).map_err(|_| StoreError::Unavailable {
            why: "the system gives no random numbers to sign receipts with; see getrandom(2)".into(),
        })?;
        Ok(self.secrets(&drawn, false).await?.first().copied())
    }

    async fn share_secret(&self, own: &[u8; SECRET_BYTES]) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
        self.secrets(own, true).await
    }
}
