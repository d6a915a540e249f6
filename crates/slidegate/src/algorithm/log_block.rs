//! Entries of a `sliding-log` on the heap: stamps alone while every cost is 1, with prefix sums otherwise.
//!
//! ```text
//!   units     | head, len | stamp | stamp | stamp | ...            a ring of stamps, oldest at head
//!   totals    | head, len | base  | stamp total | stamp total | ...
//! ```
//!
//! A ring buffer in one block of words, header included, so that the table keeps only a pointer.
//! Rejected: a `VecDeque`, whose four header words would be in the table.

/// Entries, oldest first.
///
/// While every cost is 1, equal stamps are repeated. With costs each stamp occurs once, with the total
/// admitted up to and including it (a prefix sum); `base` is the total before the first. Totals wrap: only
/// differences count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    words: Box<[u64]>,
}

/// Marks a header whose entries have totals.
const TOTALS: u64 = 1 << 63;
/// At every charge usually at most this many entries have expired since the last one.
const FEW_EXPIRED: usize = 4;
const LEN_BITS: u32 = 32;
/// Most entries that the header can count.
const LEN_MAX: usize = (1 << 31) - (1 << 16);

/// The first word of a block.
#[derive(Clone, Copy)]
struct Header {
    totals: bool,
    head: usize,
    len: usize,
}

impl Header {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "both parts are of 32 bits at most")]
    fn unpack(word: u64) -> Self {
        let head = (word & !TOTALS) >> LEN_BITS;
        Self { totals: word & TOTALS != 0, head: head as usize, len: (word & u64::from(u32::MAX)) as usize }
    }

    #[inline]
    fn pack(self) -> u64 {
        let mark = if self.totals { TOTALS } else { 0 };
        mark | (self.head as u64) << LEN_BITS | self.len as u64
    }

    /// Words of an entry, and words before the first.
    #[inline]
    fn width(self) -> usize {
        1 + usize::from(self.totals)
    }
}

impl Block {
    #[inline]
    fn header(&self) -> Header {
        Header::unpack(self.words[0])
    }

    #[inline]
    fn set_header(&mut self, header: Header) {
        self.words[0] = header.pack();
    }

    /// How many entries the block holds.
    #[inline]
    fn capacity(&self, header: Header) -> usize {
        // A shift, as an entry is one word or two: a division takes longer than the rest of the lookup.
        (self.words.len() - header.width()) >> u32::from(header.totals)
    }

    /// Position of entry `index` in the ring.
    #[inline]
    fn ring_index(&self, header: Header, index: usize) -> usize {
        let (ring_index, capacity) = (header.head + index, self.capacity(header));
        if ring_index >= capacity { ring_index - capacity } else { ring_index }
    }

    /// The word at which entry `index` begins.
    #[inline]
    fn word_index(&self, header: Header, index: usize) -> usize {
        header.width() + (self.ring_index(header, index) << u32::from(header.totals))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.header().len
    }

    #[inline]
    pub(super) fn stamp(&self, index: usize) -> u64 {
        self.words[self.word_index(self.header(), index)]
    }

    /// Whether every entry is of cost 1.
    pub(super) fn all_costs_are_one(&self) -> bool {
        !self.header().totals
    }

    /// Index of the first entry later than `stamp`. Usually few entries are earlier.
    #[inline]
    pub(super) fn first_after(&self, stamp: u64) -> usize {
        let header = self.header();
        for index in 0..FEW_EXPIRED.min(header.len) {
            if self.words[self.word_index(header, index)] > stamp {
                return index;
            }
        }
        if header.len <= FEW_EXPIRED { header.len } else { self.first_after_many(stamp) }
    }

    fn first_after_many(&self, stamp: u64) -> usize {
        self.first_where(0, |block, index| block.stamp(index) > stamp)
    }

    /// Binary search: the first entry from `low` on for which `is` holds. It must hold for all later entries too.
    fn first_where(&self, low: usize, is: impl Fn(&Self, usize) -> bool) -> usize {
        let (mut low, mut high) = (low, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is(self, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Total admitted before entry `index`.
    #[inline]
    fn total_before(&self, index: usize) -> u64 {
        let header = self.header();
        match (header.totals, index.checked_sub(1)) {
            (false, _) => index as u64,
            (true, None) => self.words[1],
            (true, Some(before)) => self.words[self.word_index(header, before) + 1],
        }
    }

    /// Units in entries `from..to`.
    #[inline]
    pub(super) fn units(&self, from: usize, to: usize) -> u64 {
        self.total_before(to).wrapping_sub(self.total_before(from))
    }

    /// The first entry at or after `from` with which the entries since `from` hold at least `units`.
    pub(super) fn entry_reaching(&self, from: usize, units: u64) -> usize {
        self.first_where(from, |block, index| block.units(from, index + 1) >= units)
    }

    #[inline]
    pub(super) fn drop_front(&mut self, count: usize) {
        let header = self.header();
        if header.totals {
            self.words[1] = self.total_before(count);
        }
        self.set_header(Header { head: self.ring_index(header, count), len: header.len - count, ..header });
    }

    #[inline]
    pub(super) fn push(&mut self, stamp: u64, cost: u64) {
        let header = self.header();
        if cost == 1 && !header.totals && !self.needs_resize(header) {
            let place = self.word_index(header, header.len);
            self.words[place] = stamp;
            self.set_header(Header { len: header.len + 1, ..header });
        } else {
            self.push_slow(stamp, cost);
        }
    }

    /// Drops the entries that are no later than `gone` and pushes one unit at `stamp`, if between `least` and `most`
    /// entries remain without it, few are dropped and the block keeps its size. Returns how many entries there are then;
    /// `None`, without any change, in all other cases.
    #[inline]
    pub(super) fn push_fast(&mut self, stamp: u64, gone: u64, least: usize, most: u64) -> Option<usize> {
        let header = self.header();
        let mut dropped = 0;
        while dropped < header.len && self.words[self.word_index(header, dropped)] <= gone {
            dropped += 1;
            if dropped > FEW_EXPIRED {
                return None;
            }
        }
        let head = self.ring_index(header, dropped);
        let header = Header { head, len: header.len - dropped, ..header };
        if header.totals || self.needs_resize(header) || header.len < least || header.len as u64 > most {
            return None;
        }
        let place = self.word_index(header, header.len);
        self.words[place] = stamp;
        self.set_header(Header { len: header.len + 1, ..header });
        Some(header.len + 1)
    }

    /// Pushes into a block that has to be resized, or has totals or needs them now.
    #[inline(never)]
    fn push_slow(&mut self, stamp: u64, cost: u64) {
        if cost > 1 && !self.header().totals {
            *self = Self::of_units(true, (0..self.len()).map(|index| self.stamp(index)));
        }
        let header = self.header();
        let total = self.total_before(header.len).wrapping_add(cost);
        match header.len.checked_sub(1) {
            Some(last) if header.totals && self.stamp(last) == stamp => {
                let place = self.word_index(header, last);
                self.words[place + 1] = total;
            }
            _ => self.push_words([stamp, total]),
        }
    }

    fn push_words(&mut self, entry: [u64; 2]) {
        if self.needs_resize(self.header()) {
            self.resize();
        }
        let header = self.header();
        let (place, width) = (self.word_index(header, header.len), header.width());
        self.words[place..place + width].copy_from_slice(&entry[..width]);
        self.set_header(Header { len: header.len + 1, ..header });
    }

    /// Takes `units` away from the entries `index..` that hold them, oldest first.
    pub(super) fn lower(&mut self, index: usize, units: u64) {
        let header = self.header();
        if !header.totals {
            let count = usize::try_from(units).expect("no more units than entries");
            self.remove(index, count);
            return;
        }
        let before = self.total_before(index);
        for later in index..header.len {
            let place = self.word_index(header, later) + 1;
            let held = self.words[place].wrapping_sub(before);
            self.words[place] = before.wrapping_add(held.saturating_sub(units));
        }
        let emptied = (index..header.len).take_while(|&later| self.total_before(later + 1) == before);
        self.remove(index, emptied.count());
    }

    /// Takes out entries `index..index + count`.
    fn remove(&mut self, index: usize, count: usize) {
        let header = self.header();
        for later in index + count..header.len {
            let (from, to) = (self.word_index(header, later), self.word_index(header, later - count));
            self.words.copy_within(from..from + header.width(), to);
        }
        self.set_header(Header { len: header.len - count, ..header });
    }

    /// Whether the block is full, or much larger than needed.
    #[inline]
    fn needs_resize(&self, header: Header) -> bool {
        let capacity = self.capacity(header);
        header.len == capacity || (capacity > 16 && header.len < capacity / 4)
    }

    /// Grows by a quarter instead of doubling, and frees the memory of a past burst: users plan with sizes.
    #[cold]
    fn resize(&mut self) {
        let (header, width) = (self.header(), self.header().width());
        assert!(header.len < LEN_MAX, "`growth_bytes_max` keeps every log below this length");
        let mut resized = Self::for_len(header.totals, header.len);
        if header.totals {
            resized.words[1] = self.words[1];
        }
        for index in 0..header.len {
            let (from, to) = (self.word_index(header, index), (index + 1) * width);
            resized.words[to..to + width].copy_from_slice(&self.words[from..from + width]);
        }
        resized.set_header(Header { head: 0, ..header });
        *self = resized;
    }

    /// Entries of cost 1, and room for some more. With totals, equal stamps are joined.
    pub(super) fn of_units(totals: bool, stamps: impl ExactSizeIterator<Item = u64>) -> Self {
        let mut block = Self::for_len(totals, stamps.len());
        stamps.for_each(|stamp| block.push(stamp, 1));
        block
    }

    /// An empty block with room for `len` entries and some more.
    fn for_len(totals: bool, len: usize) -> Self {
        let header = Header { totals, head: 0, len: 0 };
        let mut block = Self { words: vec![0; (1 + capacity_next(len)) * header.width()].into() };
        block.set_header(header);
        block
    }

    /// Most bytes by which a push of `cost` makes the block grow.
    #[inline]
    pub(super) fn growth_bytes_max(&self, cost: u64) -> usize {
        let header = self.header();
        let becomes_totals = cost > 1 && !header.totals;
        if !becomes_totals && header.len < self.capacity(header) {
            return 0;
        }
        if header.len >= LEN_MAX {
            // More than any budget: a log of two thousand million entries does not grow.
            return usize::MAX / 2;
        }
        // Both blocks exist until the new one is filled.
        bytes_at_most(header.totals || becomes_totals, header.len)
    }

    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val::<[_]>(&self.words)
    }
}

/// Bytes of a block for `len` entries and one more.
#[inline]
pub(super) fn bytes_at_most(totals: bool, len: usize) -> usize {
    // After becoming totals it may grow once more.
    let capacity = capacity_next(len) + usize::from(totals) * 8;
    (1 + capacity) * (1 + usize::from(totals)) * size_of::<u64>()
}

/// Capacity of a block for `len` entries and some more: a block of stamps alone is a multiple of 32 bytes.
fn capacity_next(len: usize) -> usize {
    (len + (len / 4).max(4)) / 4 * 4 + 3
}
