//! The hardware's bugs that reach compiled code (`microarch.md` section 10), from td's `Erratum` records.

pub use crate::generated::Erratum;

/// What td says about an erratum.
#[derive(Debug, PartialEq, Eq)]
pub struct ErratumInfo {
    /// Short name.
    pub name: &'static str,
    /// What goes wrong, one sentence.
    pub summary: &'static str,
    /// What happens to a program that is not prepared.
    pub effect: &'static str,
    /// What the compiler does about it.
    pub workaround: &'static str,
    /// Whether the compiler has a setting `erratum_<name>` that leaves the work-around out. The others need no code.
    pub is_setting: bool,
    /// Where the fact comes from.
    pub reference: &'static str,
}

impl Erratum {
    /// Its short name.
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}
