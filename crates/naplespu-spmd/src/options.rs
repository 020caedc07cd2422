//! Options of the pass.

/// The numbers of lanes, except one work-item at a time: one to eight vectors for each value.
pub const LANE_COUNTS: [u32; 4] = [16, 32, 64, 128];

/// How a work-item function becomes a dispatch function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Work-items of a work-group in each dimension.
    pub workgroup_size: [u32; 3],
    /// Bytes of scratchpad, from address 0, that are zeroed when a work-group starts.
    pub workgroup_bytes: u32,
    /// Work-items that a thread executes at once: 1, or one of [`LANE_COUNTS`].
    pub lanes: u32,
    /// Known alignment of each parameter in bytes, a power of two; 1 for missing entries.
    pub alignment: Vec<u32>,
}

impl Options {
    /// Returns the number of work-items in a work-group.
    pub fn work_items(&self) -> u32 {
        self.workgroup_size
            .iter()
            .fold(1, |items: u32, &size| items.saturating_mul(size))
    }

    /// Returns the number of subgroups in a work-group: the threads that execute it at once.
    pub fn subgroups(&self) -> u32 {
        self.work_items().div_ceil(self.lanes.max(1))
    }
}
