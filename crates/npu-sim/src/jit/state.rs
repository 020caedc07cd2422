//! What a translation works on: the state of a thread, where code of the host finds it.

use crate::hazard::Watch;
use crate::registers::Lanes;
use crate::shared::SCRATCHPAD_SIZE;
use crate::thread::Thread;

/// Not the address of a branch: those are multiples of four.
pub(super) const NO_BRANCH: u32 = 1;

/// Not the address of an instruction of long latency.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a translation works on; it knows the places of the fields by [`std::mem::offset_of`].
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
    /// What is followed for the thread.
    pub watch: &'a mut Watch,
    /// Words that may have undriven bits, as [`Watch::memory`] has them.
    pub words: u64,
    /// Scalar registers of the region whose upper halves nothing drives.
    pub undriven: u64,
    /// Instructions left.
    pub left: u64,
    pub pc: u32,
    pub last_long: u32,
    /// 1 if a branch went to the PC.
    pub branched: u32,
    /// Address of the last taken branch, or [`NO_BRANCH`].
    pub last_branch: u32,
    /// The load that it was left before, since what is undriven of its word is not what it is taken to be, or [`NOWHERE`].
    pub reload: u32,
    /// The lane mask.
    pub mask: u32,
    /// All bits of the lanes that are on. Only used in code for masks that are not all ones.
    pub lanes: Lanes,
}

impl<'a> State<'a> {
    /// The state of a thread for `left` instructions; `memory` is that of [`crate::Memory::places`].
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
