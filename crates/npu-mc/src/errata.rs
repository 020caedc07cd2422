//! The hardware's bugs that reach compiled code (`microarch.md` section 10), from td's `Erratum` records.

use crate::generated;

pub use crate::generated::errata_by_name::*;

/// One bug.
#[derive(Debug, PartialEq, Eq)]
pub struct Erratum {
    /// Short name; the compiler's setting is `erratum_<name>`.
    pub name: &'static str,
    /// What goes wrong, one sentence.
    pub summary: &'static str,
    /// What happens to a program that is not prepared.
    pub effect: &'static str,
    /// What the compiler does about it.
    pub workaround: &'static str,
    /// Whether the work-around is on unless switched off.
    pub default: bool,
    /// Where the fact comes from.
    pub reference: &'static str,
}

/// All errata in td's order.
pub static ALL: &[Erratum] = generated::ERRATA;

/// The erratum of this name.
pub fn by_name(name: &str) -> Option<&'static Erratum> {
    ALL.iter().find(|e| e.name == name)
}
