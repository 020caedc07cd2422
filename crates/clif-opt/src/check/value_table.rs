//! Numbers of the values of a function.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::Value;

/// The numbers of values, which can be cleared in constant time.
#[derive(Debug)]
pub struct ValueTable {
    /// The tag of entries since the last clear.
    run: u32,
    marked: Vec<(u32, u64)>,
}

impl Default for ValueTable {
    fn default() -> Self {
        // The entries between the numbers have the tag 0.
        Self {
            run: 1,
            marked: Vec::new(),
        }
    }
}

impl ValueTable {
    /// Removes all numbers and keeps the memory.
    pub fn clear(&mut self) {
        match self.run.checked_add(1) {
            Some(run) => self.run = run,
            None => *self = Self::default(),
        }
    }

    /// Returns the number of a value, if it has one.
    pub fn get(&self, value: Value) -> Option<u64> {
        let &(run, number) = self.marked.get(value.index())?;
        (run == self.run).then_some(number)
    }

    /// Sets the number of a value and returns the previous one.
    pub fn set(&mut self, value: Value, number: u64) -> Option<u64> {
        if self.marked.len() <= value.index() {
            self.marked.resize(value.index() + 1, (0, 0));
        }
        let previous = self.get(value);
        self.marked[value.index()] = (self.run, number);
        previous
    }
}
