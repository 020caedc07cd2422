//! The state of a thread in the layout that host code accesses.

use crate::hazard::Watch;
use crate::registers::Lanes;
use crate::shared::SCRATCHPAD_SIZE;
use crate::thread::Thread;

/// An invalid address of a branch: valid ones are multiples of 4.
pub(super) const NO_BRANCH: u32 = 1;

/// An invalid address of an instruction of long latency.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The state that a translation works on; translated code uses the field offsets from
/// [`std::mem::offset_of`].
#[repr(C)]
pub(super) struct State<'a> {
    pub scalars: &'a mut [u32; 256],
    pub vectors: &'a mut [Lanes; 64],
    /// [`SCRATCHPAD_SIZE`](crate::SCRATCHPAD_SIZE) bytes.
    pub scratchpad: *mut u8,
    /// The page table of main memory.
    pub table: *const u32,
    /// The pages of main memory.
    pub pages: *mut u8,
    /// The tracked state of the thread.
    pub watch: &'a mut Watch,
    /// The words that may have undriven bits, as in [`Watch::memory`].
    pub words: u64,
    /// The scalar registers of the region with undriven upper halves.
    pub undriven: u64,
    /// The number of instructions left.
    pub left: u64,
    pub pc: u32,
    pub last_long: u32,
    /// 1 if a branch went to the PC, else 0.
    pub branched: u32,
    /// The address of the last taken branch, or [`NO_BRANCH`].
    pub last_branch: u32,
    /// The address of the load before which the translation was left because its word had
    /// unexpected undriven bits, or [`NOWHERE`].
    pub reload: u32,
    /// The lane mask.
    pub mask: u32,
    /// The lane mask, expanded to all bits of each lane. Only code for partial masks uses it.
    pub lanes: Lanes,
}

impl<'a> State<'a> {
    /// Creates the state of a thread for `left` instructions; `memory` is the result of
    /// [`crate::Memory::places`].
    pub fn new(
        thread: &'a mut Thread,
        scratchpad: &'a mut [u8],
        (table, pages): (*const u32, *mut u8),
        left: u64,
    ) -> State<'a> {
        debug_assert_eq!(scratchpad.len(), SCRATCHPAD_SIZE);
        State {
            words: thread.watch.memory(),
            mask: thread.mask.into(),
            scalars: &mut thread.scalars,
            vectors: &mut thread.vectors,
            watch: &mut thread.watch,
            scratchpad: scratchpad.as_mut_ptr(),
            lanes: Lanes::default(),
            table,
            pages,
            undriven: 0,
            left,
            pc: 0,
            last_long: NOWHERE,
            branched: 0,
            last_branch: NO_BRANCH,
            reload: NOWHERE,
        }
    }
}
