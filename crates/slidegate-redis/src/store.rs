//! The store: every verb is one script call.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slidegate::algorithm::State;
use slidegate::receipt::{ReceiptId, ReceiptStamp};
use slidegate::store::{Call, LimitUsage, SECRET_BYTES, Store, StoreError, Update, UpdateError};
use slidegate::{Admission, Applied, Decision, Key, Receipt, ReceiptError, Rule};

use crate::decode::{self, Reply};
use crate::encode::Args;
use crate::failure::Failure;
use crate::keys::{KeyTemplate, spent_name};
use crate::link::{BATCH_CALLS_MAX, ConnectError, Link, OpenError, ScriptCall};
use crate::options::{LogLayout, RedisOptions};
use crate::scripts::{self, Script};

/// How the name of the value beside sorted sets ends.
const BESIDE_SETS: &[u8] = b"%state";
/// Numbers drawn for calls are below this: scripts count exactly below 2^53, and six bytes hold it.
const NONCE_BITS: u32 = 48;

/// A store that all processes share that use the same Redis and name their keys alike.
///
/// Its clock is the server's. Every verb is one call of a script, in which everything is read and checked before
/// anything is written; a change of a rule is one call per key.
///
/// A call ends by its [deadline](Call::deadline), or within that of [the options](RedisOptions::deadline). What was
/// not sent by then never is, and is [`StoreError::Unavailable`]; what was sent is [`StoreError::Ambiguous`].
#[derive(Debug)]
pub struct RedisStore {
    pub(crate) link: Link,
    pub(crate) keys: KeyTemplate,
    layout: LogLayout,
    number: u32,
    random: RandomState,
    drawn: AtomicU64,
    /// The latest time at which a receipt was presented: what had expired by then stays expired.
    latest_us: AtomicU64,
}

/// What a receipt is presented for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Refund,
    Settle(u64),
    /// To ask whether it could still be used.
    Ask,
}

impl RedisStore {
    /// A store in the Redis at that URL, with the default [options](RedisOptions). All its connections are open, and
    /// it is new enough.
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

    /// The same with options.
    pub async fn connect_with(options: &RedisOptions) -> Result<Self, ConnectError> {
        let link = Link::connect(options).await?;
        let (keys, layout) = (options.keys.clone(), options.log_layout);
        let number = keys.store_number();
        let (drawn, latest_us) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { link, keys, layout, number, random: RandomState::new(), drawn, latest_us })
    }

    /// A number that nobody can guess and that is not drawn twice.
    fn draw(&self) -> u64 {
        self.random.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// The script call that asks for an admission.
    fn asked(
        &self,
        script: &'static Script,
        call: Call,
        admission: &Admission<'_>,
    ) -> Result<ScriptCall, StoreError> {
        let asks = admission.asks().iter();
        let keys: Vec<_> = asks.map(|ask| self.keys.name(ask.rule().name(), ask.key().as_str())).collect();
        self.keys.check_apart(&keys)?;
        let mut args = self.args(call);
        for ask in admission.asks() {
            args.ask(ask.rule(), ask.cost());
        }
        Ok(ScriptCall { script, keys, args: args.0 })
    }

    /// The script call that is about one key under one rule.
    fn about(
        &self,
        script: &'static Script,
        call: Call,
        rule: &Rule,
        key: Key<'_>,
        units: u64,
    ) -> ScriptCall {
        let mut args = self.args(call);
        args.ask(rule, units);
        ScriptCall { script, keys: vec![self.keys.name(rule.name(), key.as_str())], args: args.0 }
    }

    /// The script call that takes over a change of a rule for one state.
    fn changing(&self, call: Call, rule: &Rule, name: &[u8]) -> ScriptCall {
        let mut args = self.args(call);
        args.ask(rule, 0);
        ScriptCall { script: &scripts::CHANGE, keys: vec![name.to_vec()], args: args.0 }
    }

    /// What the arguments of every call begin with.
    fn args(&self, call: Call) -> Args {
        Args::at(self.layout, call, self.draw() >> (u64::BITS - NONCE_BITS))
    }

    fn decision<'a>(
        &self,
        admission: &Admission<'a>,
        reply: Result<redis::Value, StoreError>,
    ) -> Result<Decision<'a>, StoreError> {
        let answer = decode::answer(reply?, admission)?;
        let stamp = || ReceiptStamp { id: ReceiptId::new(self.draw()), store: self.number };
        Ok(Decision::new(admission, answer.states, answer.charged.then(stamp)))
    }

    /// Presents a receipt; says whether that spent it, and how many units were moved.
    async fn present(
        &self,
        call: Call,
        receipt: &Receipt,
        purpose: Purpose,
    ) -> Result<(bool, u64), UpdateError> {
        if receipt.store() != self.number {
            return Err(ReceiptError::Foreign.into());
        }
        let charges = receipt.charges();
        let mut keys: Vec<_> =
            charges.iter().map(|charge| self.keys.name(charge.rule(), charge.key())).collect();
        keys.push(spent_name(&keys[0], receipt.id()));
        let mut args = self.args(call);
        args.instant(State::receipt_expires_us(receipt));
        args.instant(self.latest_us.load(Ordering::Relaxed));
        match purpose {
            Purpose::Refund => {}
            Purpose::Settle(actual) => args.number(actual),
            Purpose::Ask => args.0.push(Vec::new()),
        }
        let refunds = matches!(purpose, Purpose::Refund);
        let script: &'static Script = if refunds { &scripts::REFUND } else { &scripts::SETTLE };
        for charge in charges {
            args.charge(charge);
        }
        let script_call = ScriptCall { script, keys, args: args.0 };
        let mut reply = Reply::new(self.link.call(call.deadline(), script_call).await?)?;
        let spent = reply.number()? == 1;
        self.latest_us.fetch_max(reply.instant_us()?, Ordering::Relaxed);
        Ok((spent, reply.number()?))
    }

    /// The answer of a script that gives back units of one key.
    async fn given_back(&self, call: Call, script_call: ScriptCall) -> Result<Applied, StoreError> {
        let mut reply = Reply::new(self.link.call(call.deadline(), script_call).await?)?;
        let applied = reply.number()? == 1;
        reply.instant_us()?;
        Ok(Applied { applied, units: reply.number()? })
    }
}

impl Store for RedisStore {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let asked = self.asked(&scripts::SHORT_CHECK, call, admission)?;
        self.decision(admission, self.link.call(call.deadline(), asked).await)
    }

    /// In one round trip unless there are very many, by one deadline; the clock is read once per admission.
    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let mut calls = Vec::with_capacity(admissions.len());
        // What is refused here is not sent.
        let mut ask = |admission| {
            calls.push(self.asked(&scripts::SHORT_CHECK, call, admission)?);
            Ok(())
        };
        let asked: Vec<_> = admissions.iter().map(&mut ask).collect();
        let mut replies = self.link.call_all(call.deadline(), calls).await.into_iter();
        let decide = |(admission, asked): (_, Result<(), _>)| {
            asked.and_then(|()| self.decision(admission, replies.next().expect("one reply per call")))
        };
        admissions.iter().zip(asked).map(decide).collect()
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let asked = self.asked(&scripts::SHORT_PEEK, call, admission)?;
        self.decision(admission, self.link.call(call.deadline(), asked).await)
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        match update {
            Update::Refund(receipt) => {
                let (spent, units) = self.present(call, receipt, Purpose::Refund).await?;
                Ok(Applied { applied: spent && units > 0, units })
            }
            Update::Settle(receipt, actual) => match receipt.settled_cost(actual) {
                Ok(cost) => {
                    let (spent, units) = self.present(call, receipt, Purpose::Settle(actual)).await?;
                    Ok(Applied { applied: spent && (units > 0 || actual == cost), units })
                }
                // A receipt that was spent or has expired says so, whatever it is to be settled for.
                Err(error) => match self.present(call, receipt, Purpose::Ask).await? {
                    (true, _) => Err(error.into()),
                    (false, _) => Ok(Applied::default()),
                },
            },
            Update::Credit(charge) => {
                let (rule, key, units) = (charge.rule(), charge.key(), charge.cost());
                Ok(self.given_back(call, self.about(&scripts::CREDIT, call, rule, key, units)).await?)
            }
            Update::Reset(rule, key) => {
                Ok(self.given_back(call, self.about(&scripts::RESET, call, rule, key, 0)).await?)
            }
        }
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let about = self.about(&scripts::INSPECT, call, rule, key, 0);
        let mut reply = Reply::new(self.link.call(call.deadline(), about).await?)?;
        reply.instant_us()?;
        let usages = rule.limits().iter().map(|&limit| {
            let (used, reset_after_us) = (reply.number()?, reply.number()?);
            Ok(LimitUsage::new(limit, used, Duration::from_micros(reset_after_us)))
        });
        usages.collect()
    }

    /// Key by key, as they are found: what is charged meanwhile under the old rule may still go on under it.
    ///
    /// The call's deadline holds for all keys. The deadline of the options holds for each round trip, as how many there
    /// are depends on how many keys Redis holds.
    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        let mut pattern = self.keys.pattern(rule.name().as_bytes());
        if self.layout == LogLayout::SortedSet {
            // Where a rule has several limits there is nothing under the name itself.
            pattern.push(b'*');
        }
        let mut cursor = 0;
        loop {
            let (next, found) = self.link.scan(call.deadline(), &pattern, cursor).await?;
            let states = found.iter().map(|name| name.strip_suffix(BESIDE_SETS).unwrap_or(name));
            // A pattern may find more than it should, and a state by two names.
            let states = states.filter(|name| self.keys.key_of(name, rule.name().as_bytes()).is_some());
            let states: BTreeSet<&[u8]> = states.collect();
            let calls: Vec<_> = states.into_iter().map(|name| self.changing(call, rule, name)).collect();
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

    /// The process that asks first draws it; Redis keeps it.
    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        let mut drawn = [0; SECRET_BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut drawn).map_err(|_| StoreError::Unavailable {
            why: "the system gives no random numbers to sign receipts with; see getrandom(2)".into(),
        })?;
        let name = self.keys.secret();
        let asked =
            ScriptCall { script: &scripts::SECRET, keys: vec![name.clone()], args: vec![drawn.to_vec()] };
        match self.link.call(None, asked).await? {
            redis::Value::BulkString(secret) => secret.try_into().map(Some).map_err(|found: Vec<u8>| {
                let name = String::from_utf8_lossy(&name);
                let why = format!("`{name}` has {} bytes and is no secret of ours; delete it", found.len());
                StoreError::Refused { why: why.into() }
            }),
            _ => Err(Failure::not_understood("a script").into()),
        }
    }
}
