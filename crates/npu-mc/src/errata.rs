//! The hardware's bugs that reach compiled code (`docs/errata.md`), from td's `Erratum` records.

pub use crate::desc::ErratumInfo;
pub use crate::generated::Erratum;

impl Erratum {
    /// Returns its short name.
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}
