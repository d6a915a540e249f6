//! Entries of a `sliding-log` on the heap: stamps alone while every cost is 1, with prefix sums otherwise.
//!
//! ```text
//!                in the slot            on the heap
//!   units     | head, len | block | -> | stamp | stamp | stamp | ...   a ring of stamps, oldest at head
//!   totals    | head, len | block | -> | base | stamp total | stamp total | ...
//! ```
//!
//! The table's slot has the header, in the seven bytes that its tag leaves free: so the oldest entry and the place of the
//! next are both known from the slot, and their cache misses overlap. Rejected: the header on the heap, another miss that
//! the entries wait for; and a `VecDeque`, whose four words do not fit a narrow slot.

/// Entries, oldest first.
///
/// While every cost is 1, equal stamps are repeated. With costs each stamp occurs once, with the total
/// admitted up to and including it (a prefix sum); `base` is the total before the first. Totals wrap: only
/// differences count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Block {
    /// In the first byte, whose unused values tell logs in place from logs on the heap.
    form: Form,
    header: [u8; HEADER_BYTES],
    words: Box<[u64]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Units,
    Totals,
}

/// At every charge usually at most this many entries have expired since the last one.
const FEW_EXPIRED: usize = 4;
/// Bytes of the position of the oldest entry and of the number of entries.
const HEADER_BYTES: usize = 7;
/// Bits of each of them.
const HEADER_BITS: u32 = 28;
/// Most entries of a block: with the quarter that it grows by, and a few more, their positions fit the header.
const LEN_MAX: usize = (1 << HEADER_BITS) / 5 * 4 - 64;

/// The header, unpacked.
#[derive(Clone, Copy)]
struct Header {
    totals: bool,
    head: usize,
    len: usize,
}

impl Header {
    /// Words of an entry.
    #[inline]
    fn width(self) -> usize {
        1 + usize::from(self.totals)
    }

    /// Words before the first entry.
    #[inline]
    fn base(self) -> usize {
        usize::from(self.totals)
    }
}

impl Block {
    #[inline]
    fn header(&self) -> Header {
        let mut bytes = [0; size_of::<u64>()];
        bytes[..HEADER_BYTES].copy_from_slice(&self.header);
        let word = u64::from_le_bytes(bytes);
        let (head, len) = ((word >> HEADER_BITS) as usize, (word % (1 << HEADER_BITS)) as usize);
        Header { totals: self.form == Form::Totals, head, len }
    }

    /// Sets the position of the oldest entry and the number of entries.
    #[inline]
    fn set_header(&mut self, header: Header) {
        let word = (header.head as u64) << HEADER_BITS | header.len as u64;
        self.header.copy_from_slice(&word.to_le_bytes()[..HEADER_BYTES]);
    }

    /// How many entries the block holds.
    #[inline]
    fn capacity(&self, header: Header) -> usize {
        // A shift, as an entry is one word or two: a division takes longer than the rest of the lookup.
        (self.words.len() - header.base()) >> u32::from(header.totals)
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
        header.base() + (self.ring_index(header, index) << u32::from(header.totals))
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
            (true, None) => self.words[0],
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
            self.words[0] = self.total_before(count);
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
        let header = self.header();
        assert!(header.len < LEN_MAX, "`growth_bytes_max` keeps every log below this length");
        if header.len == self.capacity(header) {
            self.grow(header);
        } else {
            let mut resized = Self::for_len(header.totals, header.len);
            self.copy_to(&mut resized, header);
            *self = resized;
        }
    }

    /// Grows a full block where it is if the allocator can, and moves only the entries between its head and its end.
    fn grow(&mut self, header: Header) {
        let old_end = self.words.len();
        let mut words = std::mem::take(&mut self.words).into_vec();
        let new_end = words_for(header.totals, header.len);
        words.reserve_exact(new_end - old_end);
        words.resize(new_end, 0);
        self.words = words.into_boxed_slice();
        if header.head > 0 {
            let oldest = header.base() + header.head * header.width();
            let moved_by = new_end - old_end;
            self.words.copy_within(oldest..old_end, oldest + moved_by);
            self.set_header(Header { head: header.head + moved_by / header.width(), ..header });
        }
    }

    /// Copies all entries to an empty block.
    fn copy_to(&self, other: &mut Self, header: Header) {
        let width = header.width();
        if header.totals {
            other.words[0] = self.words[0];
        }
        for index in 0..header.len {
            let (from, to) = (self.word_index(header, index), header.base() + index * width);
            other.words[to..to + width].copy_from_slice(&self.words[from..from + width]);
        }
        other.set_header(Header { head: 0, ..header });
    }

    /// Entries of cost 1, and room for some more. With totals, equal stamps are joined.
    pub(super) fn of_units(totals: bool, stamps: impl ExactSizeIterator<Item = u64>) -> Self {
        let mut block = Self::for_len(totals, stamps.len());
        stamps.for_each(|stamp| block.push(stamp, 1));
        block
    }

    /// An empty block with room for `len` entries and some more.
    fn for_len(totals: bool, len: usize) -> Self {
        let form = if totals { Form::Totals } else { Form::Units };
        Self { form, header: [0; HEADER_BYTES], words: vec![0; words_for(totals, len)].into() }
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
            // More than any budget: a log of two hundred million entries does not grow.
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
    words_for(totals, len + usize::from(totals) * 8) * size_of::<u64>()
}

/// Words of a block for `len` entries and some more. Without totals they are a multiple of 32 bytes.
#[inline]
fn words_for(totals: bool, len: usize) -> usize {
    let capacity = (len + (len / 4).max(4)) / 4 * 4 + 4;
    if totals { 1 + capacity * 2 } else { capacity }
}
