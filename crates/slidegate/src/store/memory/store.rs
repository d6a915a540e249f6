//! The in-process store: shards, each behind a lock of its own.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

use super::answer::Returned;
use super::budget::{BUDGET_BYTES_DEFAULT, BUDGET_BYTES_MIN, Budget};
use super::lock::{Lock, Locks, StdLocks};
use super::locked_shards::LockedShards;
use super::shard::{Shard, Tally};
use super::single::note;
use super::slot_hints::SlotHints;
use super::spent_receipts::SpentReceipts;
use super::table::room::Room;
use crate::charge::{Admission, Charge};
use crate::decision::{Decision, StateAnswer, Verdict};
use crate::few::Few;
use crate::key::Key;
use crate::receipt::{Applied, ReceiptStamp};
use crate::rule::Rule;
use crate::store::KeyState;
use crate::store::{BudgetError, LimitUsage, Stats, StoreError};
use crate::time::{Clock, SystemClock};

/// Enough that busy threads rarely contend, few enough that an empty store is small.
const SHARDS: usize = 256;
/// Most shards that fit the id of a receipt.
const SHARDS_MAX: usize = 4_096;
/// Slots of a shard that a sweep looks at.
const SLOTS_PER_SWEEP: usize = 64;
/// Most shards of a sweep.
const SHARDS_PER_SWEEP: usize = 4;
/// Most expired records of spent receipts that a sweep or a refund drops: more than one refund adds.
pub(super) const RECORDS_PER_SWEEP: usize = 256;
/// Aligned to cache lines: no false sharing between shards.
#[repr(align(128))]
struct Padded<T>(T);

/// A store in this process's memory, shared by its threads.
///
/// Its own methods are plain functions that take the time. Through [`Store`](crate::store::Store) the same calls
/// are futures, ready at once, that can use the store's clock.
///
/// An admission locks the shards of all its keys, in the order of their numbers, so that admissions
/// over several keys are one step and cannot deadlock. A call at an earlier time than one before it
/// sees states that stand still.
///
/// Keys are identified by a 64-bit fingerprint under a random seed: two keys of equal fingerprints share their
/// counts (expected pairs among 20 million keys: 10^-5). Keys without live charges are swept, a few per call. A new key
/// that does not fit the memory budget is [`StoreError::Full`], or evicts an old one if its rule says so. Inline rules
/// together may take half of the budget ([`StoreError::InlineFull`]), so that they leave room to the others. Spent receipts
/// count in the budget too, and may be made beyond it: at most a quarter of it, half of that for one rule, and an eighth of a rule's for one key.
///
/// ```
/// use slidegate::store::MemoryStore;
/// use slidegate::{Admission, Rule};
/// use std::time::Duration;
///
/// let api = Rule::new("api", "1/10s")?;
/// let request = Admission::new(&[api.charge("alice", 1)?])?;
///
/// let store = MemoryStore::new();
/// assert!(store.check(5_000_000, &request)?.allowed());
/// let refused = store.check(6_000_000, &request)?;
/// assert_eq!(refused.retry_after(), Some(Duration::from_secs(9)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore<C = SystemClock, L: Locks = StdLocks> {
    clock: C,
    shards: Box<[Padded<L::Of<Shard>>]>,
    pub(super) spent_receipts: L::Of<SpentReceipts>,
    pub(super) id: u32,
    seeded: SeedableRandomState,
    pub(super) slot_hints: SlotHints,
    pub(super) budget: Arc<Budget>,
    /// The part of the budget that inline rules may take.
    inline_budget: Budget,
    /// The watermark of time, which never moves back. States that ended by then may be dropped, and receipts that
    /// expired by then stay expired.
    pub(super) noted_us: AtomicU64,
    /// Number of sweeps so far.
    sweeps: AtomicUsize,
    /// Number of ended keys that were dropped.
    swept: AtomicU64,
}

impl MemoryStore {
    /// An empty store on the system's clock that takes at most [`BUDGET_BYTES_DEFAULT`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// An empty store on the system's clock with a budget of `bytes`, at least [`BUDGET_BYTES_MIN`].
    ///
    /// ```
    /// use slidegate::store::MemoryStore;
    ///
    /// assert!(MemoryStore::with_budget(512 << 20).is_ok());
    /// assert!(MemoryStore::with_budget(512).unwrap_err().to_string().starts_with("budget: 512 bytes"));
    /// ```
    pub fn with_budget(bytes: u64) -> Result<Self, BudgetError> {
        if bytes < BUDGET_BYTES_MIN {
            return Err(BudgetError::TooSmall { bytes });
        }
        Ok(Self::with_locks(SHARDS, bytes))
    }
}

impl<C: Clock> MemoryStore<C> {
    /// An empty store on `clock` that takes at most [`BUDGET_BYTES_DEFAULT`].
    #[must_use]
    pub fn with_clock(clock: C) -> Self {
        Self::with_parts(SHARDS, BUDGET_BYTES_DEFAULT, clock)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, L: Locks> fmt::Debug for MemoryStore<C, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

impl<L: Locks> MemoryStore<SystemClock, L> {
    /// An empty store of `shards` shards, rounded up to a power of two, with locks of another kind.
    ///
    /// # Panics
    ///
    /// If there are more than 4,096 shards: ids of receipts have no room for more.
    #[must_use]
    pub fn with_locks(shards: usize, budget_bytes: u64) -> Self {
        Self::with_parts(shards, budget_bytes, SystemClock::new())
    }
}

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    fn with_parts(shards: usize, budget_bytes: u64, clock: C) -> Self {
        assert!(
            shards <= SHARDS_MAX,
            "shards: {shards} are too many; ids of receipts have room for {SHARDS_MAX}"
        );
        let random = RandomState::new();
        let budget = Arc::new(Budget::new(budget_bytes));
        let shard = |number| Padded(Lock::new(Shard::new(number)));
        Self {
            clock,
            shards: (0..shards.next_power_of_two()).map(shard).collect(),
            spent_receipts: Lock::new(SpentReceipts::default()),
            #[expect(clippy::cast_possible_truncation, reason = "32 random bits")]
            id: random.hash_one("id") as u32,
            seeded: SeedableRandomState::with_seed(random.hash_one("seed"), SharedSeed::global_random()),
            slot_hints: SlotHints::new(),
            inline_budget: Budget::inline_part_of(&budget),
            budget,
            noted_us: AtomicU64::new(0),
            sweeps: AtomicUsize::new(0),
            swept: AtomicU64::new(0),
        }
    }

    /// The same empty store with a fixed seed, for reproducible tests and simulations.
    ///
    /// Which keys find room at the budget, and which one is evicted, depends on their slots, and so on
    /// the seed. A store with untrusted keys must keep the random seed: an attacker who knows it can make keys collide.
    ///
    /// ```
    /// use slidegate::store::{BUDGET_BYTES_MIN, MemoryStore};
    /// use slidegate::{Admission, Rule};
    ///
    /// let api = Rule::new("api", "1/10s")?;
    /// let room = || -> Result<u64, Box<dyn std::error::Error>> {
    ///     let store = MemoryStore::with_budget(BUDGET_BYTES_MIN)?.with_seed(7);
    ///     for user in 0..20_000 {
    ///         let key = format!("user:{user}");
    ///         let request = Admission::new(&[api.charge(&key, 1)?])?;
    ///         let _full = store.check(5_000_000, &request).is_err();
    ///     }
    ///     Ok(store.stats().keys)
    /// };
    /// assert_eq!(room()?, room()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the store was used: its states could not be found under another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        static SHARED: SharedSeed = SharedSeed::from_u64(0);
        let unused = self.shards.iter().all(|shard| shard.0.lock().is_unused());
        assert!(unused, "seed: the store was used already; give it a seed before that");
        Self { seeded: SeedableRandomState::with_seed(seed, &SHARED), ..self }
    }

    /// The same store on another clock.
    ///
    /// ```
    /// use slidegate::store::MemoryStore;
    /// use slidegate::time::{Clock, ManualClock};
    ///
    /// let store = MemoryStore::with_budget(512 << 20)?.on_clock(ManualClock::at_us(1_000));
    /// assert_eq!(store.clock().now_us(), 1_000);
    /// # Ok::<(), slidegate::store::BudgetError>(())
    /// ```
    #[must_use]
    pub fn on_clock<D: Clock>(self, clock: D) -> MemoryStore<D, L> {
        let Self {
            clock: _,
            shards,
            spent_receipts,
            id,
            seeded,
            slot_hints,
            budget,
            inline_budget,
            noted_us,
            sweeps,
            swept,
        } = self;
        MemoryStore {
            clock,
            shards,
            spent_receipts,
            id,
            seeded,
            slot_hints,
            budget,
            inline_budget,
            noted_us,
            sweeps,
            swept,
        }
    }

    /// The clock for calls without a time.
    #[must_use]
    #[inline]
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Decides and, if everything passes, charges everything. A denial changes nothing, nor does a failure.
    #[inline]
    pub fn check<'a>(&self, now_us: u64, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.check_with_error(Some(now_us), admission)
    }

    /// [`MemoryStore::check`] at `instant_us` or now, with the caller's error type, so that the answer is written once.
    #[inline]
    pub(super) fn check_with_error<'a, E: From<StoreError>>(
        &self,
        instant_us: Option<u64>,
        admission: &Admission<'a>,
    ) -> Result<Decision<'a>, E> {
        match admission.only() {
            Some(charge) => self.check_single(
                instant_us,
                charge,
                self.fingerprint(charge.key.identity()),
                None,
                Returned(|error: StoreError| Err(error.into())),
            ),
            None => Ok(self.check_all(self.now_us(instant_us), admission)?),
        }
    }

    /// Checks an admission of any kind.
    #[inline(never)]
    pub(super) fn check_all<'a>(
        &self,
        now_us: u64,
        admission: &Admission<'a>,
    ) -> Result<Decision<'a>, StoreError> {
        let mut locked = LockedShards::new(self, admission.asks());
        let verdicts = locked.verdicts(now_us);
        let answers = verdicts.iter().copied().map(StateAnswer::uncharged);
        let decision = Decision::new(admission, answers, None);
        if !decision.allowed() {
            return Ok(decision);
        }
        // Shadow rules that would all deny: the request passes, and nothing is charged.
        if !verdicts.iter().any(Verdict::allowed) {
            return Ok(decision);
        }
        note(&self.noted_us, now_us);
        let room = self.room();
        // A shadow rule that would deny is not charged.
        let prepared = match locked.prepare(room, |index| verdicts[index].allowed()) {
            Ok(prepared) => prepared,
            Err(full) => {
                // Admissions sweep; if none succeeds any more, the refused ones have to.
                locked.sweep_some(room, SLOTS_PER_SWEEP);
                drop(locked);
                self.sweep_some();
                return Err(full);
            }
        };
        let mut answers: Few<StateAnswer> = Few::default();
        let mut id = None;
        for (index, prepared) in prepared.iter().enumerate() {
            answers.push(match prepared {
                None => StateAnswer::uncharged(verdicts[index]),
                Some(prepared) => {
                    let (order, answer) = locked.charge(room, index, now_us, prepared);
                    id.get_or_insert_with(|| locked.id_of(index, order));
                    answer
                }
            });
        }
        let sweep_is_due = locked.sweep_is_due();
        drop(locked);
        if sweep_is_due {
            self.sweep_some();
        }
        let stamp = id.map(|id| ReceiptStamp { id, store: self.id });
        Ok(Decision::new(admission, answers, stamp))
    }

    /// Decides without charging.
    #[must_use]
    pub fn peek<'a>(&self, now_us: u64, admission: &Admission<'a>) -> Decision<'a> {
        let now_us = self.now_us(Some(now_us));
        let verdicts = LockedShards::new(self, admission.asks()).verdicts(now_us);
        Decision::new(admission, verdicts.iter().copied().map(StateAnswer::uncharged), None)
    }

    /// Gives back the charge's units from the oldest live charges first, at most what is used.
    pub fn credit(&self, now_us: u64, charge: &Charge<'_>) -> Applied {
        let (fingerprint, mut shard) = self.shard(charge.key.identity());
        shard.credit(self.room(), fingerprint, now_us, charge)
    }

    /// Drops the state of a key. Receipts of its earlier charges are void.
    pub fn reset(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Applied {
        let (fingerprint, mut shard) = self.shard(key.identity());
        shard.reset(self.room(), fingerprint, now_us, rule)
    }

    /// What is used of every limit of a rule, without changing anything.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Vec<LimitUsage> {
        let (fingerprint, shard) = self.shard(key.identity());
        let usages = shard.usages(fingerprint, now_us, rule).into_iter().map(|(limit, usage)| {
            LimitUsage::new(limit, usage.used, Duration::from_micros(usage.reset_after_us))
        });
        usages.collect()
    }

    /// Applies a live change of a rule to all its states.
    pub fn change(&self, now_us: u64, rule: &Rule) {
        for shard in &self.shards {
            shard.0.lock().change(self.room(), now_us, rule);
        }
    }

    /// Drops all keys without live charges, one shard at a time, and frees their memory; returns how many. Optional:
    /// admissions do the same a few keys at a time.
    pub fn sweep(&self, now_us: u64) -> usize {
        self.noted_us.fetch_max(now_us, Ordering::Relaxed);
        self.spent_receipts.lock().drop_expired(self.noted_us(), usize::MAX, &self.budget);
        self.shards.iter().map(|shard| shard.0.lock().sweep(self.room())).sum()
    }

    /// Statistics of the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::new(self.budget.bytes(), self.budget.taken());
        stats.swept = self.swept.load(Ordering::Relaxed);
        stats.spent_receipts = self.spent_receipts.lock().len() as u64;
        for shard in &self.shards {
            let shard = shard.0.lock();
            let Tally { evicted, full } = shard.tally;
            stats.keys += shard.len() as u64;
            stats.evicted += evicted;
            stats.full += full;
        }
        stats
    }

    /// A copy of the state of a key as it is stored; `None` if it was never charged, or dropped.
    #[must_use]
    pub fn state(&self, rule: &Rule, key: Key<'_>) -> Option<KeyState> {
        let (fingerprint, shard) = self.shard(key.identity());
        shard.state(fingerprint, rule)
    }

    /// The watermark of time: states that ended by then may have been dropped.
    #[must_use]
    pub fn noted_us(&self) -> u64 {
        self.noted_us.load(Ordering::Relaxed)
    }

    /// Sweeps a few slots of the next shard, round-robin, so that all shards are swept however the traffic is spread.
    /// Goes on to further shards as long as it drops keys: sweeping live keys gains nothing.
    #[cold]
    pub(super) fn sweep_some(&self) {
        if let Some(mut spent) = self.spent_receipts.try_lock() {
            spent.drop_expired(self.noted_us(), RECORDS_PER_SWEEP, &self.budget);
        }
        for _ in 0..SHARDS_PER_SWEEP {
            let number = self.sweeps.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            // A locked shard is skipped: the next sweep comes soon.
            let Some(mut shard) = self.shards[number].0.try_lock() else { return };
            if shard.sweep_some(self.room(), SLOTS_PER_SWEEP) == 0 {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn room(&self) -> Room<'_> {
        Room {
            budget: &self.budget,
            inline_budget: &self.inline_budget,
            noted_us: self.noted_us(),
            spared: &[],
            swept: &self.swept,
        }
    }

    /// The fingerprint of a key; never 0.
    #[inline]
    pub(super) fn fingerprint(&self, key: &str) -> u64 {
        self.seeded.hash_one(key).max(1)
    }

    /// The number of a key's shard, from the low bits of its fingerprint. Tables use the high bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
    pub(super) fn shard_of(&self, fingerprint: u64) -> usize {
        fingerprint as usize & (self.shards.len() - 1)
    }

    #[inline]
    pub(super) fn lock_shard(&self, index: usize) -> <L::Of<Shard> as Lock<Shard>>::Guard<'_> {
        self.shards[index].0.lock()
    }

    /// The fingerprint of a key, and its shard.
    pub(super) fn shard(&self, key: &str) -> (u64, <L::Of<Shard> as Lock<Shard>>::Guard<'_>) {
        let fingerprint = self.fingerprint(key);
        (fingerprint, self.lock_shard(self.shard_of(fingerprint)))
    }
}
