//! Memory as a list of written bytes over unknown initial contents.
//!
//! The regions do not overlap: main memory, the frame of the function with its caller's stack
//! above it (addresses that are sums with the stack pointer at entry), the scratchpad, and the locks
//! of atomic operations. The proof assumes that pointers from outside do not point into the frame.

use crate::term::{Op, Pool, Term, WORD};

/// A region of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// Main memory without the frame.
    Main,
    /// The stack from the frame of the function upwards.
    Frame,
    /// The scratchpad.
    Scratchpad,
    /// The locks of atomic operations: a byte at each address of [`LOCKS`].
    Locks,
}

const REGIONS: usize = 4;

/// The names of the unknown addresses of locks: of the core, and between cores.
pub const LOCKS: [&str; 2] = ["address_of_lock_core", "address_of_lock_machine"];

/// A change of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// A byte was written, if the condition is 1.
    Byte {
        condition: Term,
        address: Term,
        value: Term,
    },
    /// A call may have written anything, if the condition is 1.
    Call { condition: Term, number: usize },
}

impl Change {
    fn under(self, pool: &mut Pool, selector: Term) -> Self {
        match self {
            Self::Byte {
                condition,
                address,
                value,
            } => Self::Byte {
                condition: pool.and(selector, condition),
                address,
                value,
            },
            Self::Call { condition, number } => Self::Call {
                condition: pool.and(selector, condition),
                number,
            },
        }
    }
}

/// The changes of one region, oldest first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Changes {
    list: Vec<Change>,
    /// The number of oldest changes that keep their order.
    sealed: usize,
}

/// The contents of all regions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Memory {
    regions: [Changes; REGIONS],
}

/// The maximum nesting of addresses that are selections; each is looked up at both alternatives.
const DEPTH: u32 = 4;

impl Memory {
    /// Returns the region of an address in main memory; an address in the frame is a sum with `sp`.
    pub fn region(pool: &mut Pool, address: Term, sp: Term) -> Region {
        match pool.split_address(address, sp) {
            Some(_) => Region::Frame,
            None if is_lock(pool, address) => Region::Locks,
            None => Region::Main,
        }
    }

    fn of(&self, region: Region) -> &Changes {
        &self.regions[region as usize]
    }

    /// Reads bytes; the byte at the lowest address is the lowest.
    pub fn load(&self, pool: &mut Pool, region: Region, address: Term, bytes: u32) -> Term {
        let mut pieces = Vec::with_capacity(bytes as usize);
        for at in (0..bytes).rev() {
            let offset = pool.int(WORD, u64::from(at));
            let address = pool.add(address, offset);
            pieces.push(self.load_byte(pool, region, address, DEPTH));
        }
        pool.concat(&pieces)
    }

    fn load_byte(&self, pool: &mut Pool, region: Region, address: Term, depth: u32) -> Term {
        if depth > 0
            && let Some((condition, then, other)) = pool.as_ite(address)
        {
            let then = self.load_byte(pool, region, then, depth - 1);
            let other = self.load_byte(pool, region, other, depth - 1);
            return pool.ite(condition, then, other);
        }
        // Searches from the newest change back to one that certainly wrote the byte.
        let mut found = Vec::new();
        let mut start = None;
        for change in self.of(region).list.iter().rev() {
            let (applies, value) = match *change {
                Change::Byte {
                    condition,
                    address: written,
                    value,
                } => {
                    let same = match pool.difference(address, written) {
                        Some(0) => condition,
                        Some(_) => continue,
                        None => {
                            let same = pool.eq(address, written);
                            pool.and(condition, same)
                        }
                    };
                    (same, value)
                }
                Change::Call { condition, number } => {
                    let value = pool.app(&format!("memory{}_after_call{number}", region as usize), 8, &[address]);
                    (condition, value)
                }
            };
            if pool.is_true(applies) {
                start = Some(value);
                break;
            }
            if !pool.is_false(applies) {
                found.push((applies, value));
            }
        }
        let mut value = match start {
            Some(value) => value,
            None => pool.app(initial_name(region), 8, &[address]),
        };
        for (applies, written) in found.into_iter().rev() {
            value = pool.ite(applies, written, value);
        }
        value
    }

    /// Writes bytes, the lowest byte to the lowest address.
    pub fn store(&mut self, pool: &mut Pool, region: Region, address: Term, value: Term) {
        for at in 0..pool.width(value) / 8 {
            let offset = pool.int(WORD, u64::from(at));
            let address = pool.add(address, offset);
            let byte = pool.extract(8 * at + 7, 8 * at, value);
            self.store_byte(pool, region, address, byte);
        }
    }

    /// Writes a byte. Adjacent writes to different offsets from one base are ordered by address.
    fn store_byte(&mut self, pool: &mut Pool, region: Region, address: Term, value: Term) {
        let condition = pool.bool(true);
        let changes = &mut self.regions[region as usize];
        let mut at = changes.list.len();
        while at > changes.sealed {
            let Change::Byte {
                condition: of,
                address: before,
                ..
            } = changes.list[at - 1]
            else {
                break;
            };
            if of != condition {
                break;
            }
            match pool.difference(address, before) {
                Some(0) => {
                    changes.list.remove(at - 1);
                    break;
                }
                Some(distance) if (distance as i32) < 0 => at -= 1,
                Some(_) => {
                    // An older write to the same byte may precede.
                    let older = (changes.sealed..at - 1).rev().find(|&i| match changes.list[i] {
                        Change::Byte { address: a, .. } => pool.difference(address, a) == Some(0),
                        Change::Call { .. } => false,
                    });
                    let only_apart = older.is_some_and(|i| {
                        changes.list[i..at].iter().all(|change| match *change {
                            Change::Byte { address: a, .. } => pool.difference(address, a).is_some(),
                            Change::Call { .. } => false,
                        })
                    });
                    if let (Some(older), true) = (older, only_apart) {
                        changes.list.remove(older);
                        at -= 1;
                    }
                    break;
                }
                None => break,
            }
        }
        let change = Change::Byte {
            condition,
            address,
            value,
        };
        changes.list.insert(at.min(changes.list.len()), change);
    }

    /// Records that a call may change a region.
    pub fn clobber(&mut self, pool: &mut Pool, region: Region, number: usize) {
        let condition = pool.bool(true);
        let changes = &mut self.regions[region as usize];
        changes.list.push(Change::Call { condition, number });
        changes.sealed = changes.list.len();
    }

    /// Keeps later writes ordered after the earlier ones.
    pub fn seal(&mut self) {
        for changes in &mut self.regions {
            changes.sealed = changes.list.len();
        }
    }

    /// Returns the contents of `self` if the selector is 1, else those of `other`.
    pub fn merge(&self, other: &Self, pool: &mut Pool, selector: Term) -> Self {
        let opposite = pool.not(selector);
        let mut out = Self::default();
        for ((into, a), b) in out.regions.iter_mut().zip(&self.regions).zip(&other.regions) {
            let common = a.list.iter().zip(&b.list).take_while(|(x, y)| x == y).count();
            into.list.extend_from_slice(&a.list[..common]);
            for &change in &a.list[common..] {
                into.list.push(change.under(pool, selector));
            }
            for &change in &b.list[common..] {
                into.list.push(change.under(pool, opposite));
            }
            into.sealed = into.list.len();
        }
        out
    }

    /// Returns whether a region has the same history in both.
    pub fn same(&self, other: &Self, region: Region) -> bool {
        self.of(region).list == other.of(region).list
    }

    /// Returns the addresses and values of all writes to a region.
    pub fn written(&self, region: Region) -> impl Iterator<Item = (Term, Term)> + '_ {
        self.of(region).list.iter().filter_map(|change| match *change {
            Change::Byte { address, value, .. } => Some((address, value)),
            Change::Call { .. } => None,
        })
    }
}

/// Returns whether an address is that of a lock.
fn is_lock(pool: &Pool, address: Term) -> bool {
    match pool.node(address).op {
        Op::Var(symbol) => LOCKS.contains(&pool.symbol(symbol).name.as_str()),
        _ => false,
    }
}

/// Returns the name of the function for the initial bytes of a region.
pub fn initial_name(region: Region) -> &'static str {
    match region {
        Region::Main => "memory",
        Region::Frame => "frame",
        Region::Scratchpad => "scratchpad",
        Region::Locks => "locks",
    }
}
