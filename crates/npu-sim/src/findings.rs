//! Reports of errata whose outcome depends on timing or on undriven nets.

use npu_mc::errata::Erratum;
use std::collections::HashMap;
use std::fmt;

/// Distinct findings kept; the rest is only counted.
const FINDING_LIMIT: usize = 4096;

/// What a program met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// A result of long latency before a taken branch was used at the target.
    LostResult,
    /// A call through a register, which leaves the wrong return address.
    IndirectCall,
    /// The mask was cleared by a write of the upper half of `rm`, and not set directly after it.
    HalfMask,
    /// A thread waits for an instruction line that another thread has requested, and that was requested and replaced a short time before: it
    /// never fetches again.
    RepeatedLineMiss,
    /// Undriven bits 31:16 of a vector integer compare were used.
    UndrivenBits,
    /// `shuffle` or `getlane` with an index above 15.
    LaneIndex,
    /// Scalar result of a float operation on vectors while lane 0 is masked off.
    StaleFloat,
    /// A vector write to `v59` changed the lane mask at a moment that nothing fixes.
    MaskByV59,
    /// The instruction after a misaligned access may or may not have executed.
    ImpreciseTrap,
    /// A control register that does not exist was read.
    ControlRegister,
    /// An operation that the hardware does not define, or leaves results of earlier ones behind.
    UndefinedOperation,
    /// A register-register instruction with destination number 63, taken as a jump.
    Destination63,
    /// A scratchpad vector access with an empty mask, which never completes.
    EmptyMask,
    /// A `dcache_inv` cleared the dirty bits of another line, whose stores are lost. Where a line is depends on everything that
    /// went through the cache before.
    InvalidateWay0,
}

/// Where the name of a hazard comes from.
enum Origin {
    /// An erratum of td: compiled code can meet it, and the compiler works around it.
    Erratum(Erratum),
    /// It has no record.
    Name(&'static str),
}

impl Hazard {
    const fn origin(self) -> Origin {
        match self {
            Hazard::LostResult => Origin::Erratum(Erratum::LostResultBeforeTakenBranch),
            Hazard::IndirectCall => Origin::Erratum(Erratum::IndirectCallLink),
            Hazard::HalfMask => Origin::Erratum(Erratum::HalfWriteToMask),
            Hazard::RepeatedLineMiss => Origin::Erratum(Erratum::RepeatedInstructionLineMiss),
            Hazard::UndrivenBits => Origin::Erratum(Erratum::VectorCompareUpperHalf),
            Hazard::MaskByV59 => Origin::Erratum(Erratum::VectorWriteTo59),
            Hazard::Destination63 => Origin::Erratum(Erratum::VectorResultIn63),
            Hazard::EmptyMask => Origin::Erratum(Erratum::ScratchpadEmptyMask),
            Hazard::LaneIndex => Origin::Name("lane_index_above_15"),
            Hazard::StaleFloat => Origin::Name("stale_scalar_float_result"),
            Hazard::ImpreciseTrap => Origin::Name("imprecise_trap"),
            Hazard::ControlRegister => Origin::Name("undefined_control_register"),
            Hazard::UndefinedOperation => Origin::Name("undefined_operation"),
            Hazard::InvalidateWay0 => Origin::Name("invalidate_clears_way_0"),
        }
    }

    /// The erratum record in `td/`, if compiled code can meet it and the compiler works around it.
    pub const fn erratum(self) -> Option<Erratum> {
        match self.origin() {
            Origin::Erratum(erratum) => Some(erratum),
            Origin::Name(_) => None,
        }
    }

    /// The name of the erratum record, or one of the same kind for what has no record.
    pub const fn name(self) -> &'static str {
        match self.origin() {
            Origin::Erratum(erratum) => erratum.name(),
            Origin::Name(name) => name,
        }
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An erratum met at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was met.
    pub hazard: Hazard,
    /// Address of the instruction that met it.
    pub pc: u32,
    /// Number of the thread that met it first.
    pub thread: u32,
    /// The registers and addresses involved, for people.
    pub detail: String,
    /// How often it was met at this address.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:#010x}: {}: {} ({} times)",
            self.pc, self.hazard, self.detail, self.count
        )
    }
}

/// Findings by address and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    index: HashMap<(u32, Hazard), usize>,
    /// All reports, repeated and dropped ones included.
    pub total: u64,
    /// In the strict mode, the first report that was not yet taken.
    pub pending: Option<Finding>,
    strict: bool,
}

impl Findings {
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    pub fn new(strict: bool) -> Findings {
        Findings {
            strict,
            ..Findings::default()
        }
    }

    pub fn clear(&mut self) {
        *self = Findings::new(self.strict);
    }

    /// Records a finding; the text is made only when it is a new one.
    pub fn report(&mut self, thread: u32, pc: u32, hazard: Hazard, detail: impl FnOnce() -> String) {
        self.total += 1;
        let known = self.index.get(&(pc, hazard)).copied();
        if let Some(found) = known.and_then(|k| self.list.get_mut(k)) {
            found.count += 1;
            if self.strict && self.pending.is_none() {
                self.pending = Some(found.clone());
            }
            return;
        }
        if self.list.len() >= FINDING_LIMIT && !self.strict {
            return;
        }
        let finding = Finding {
            hazard,
            pc,
            thread,
            detail: detail(),
            count: 1,
        };
        if self.strict && self.pending.is_none() {
            self.pending = Some(finding.clone());
        }
        if self.list.len() < FINDING_LIMIT {
            self.index.insert((pc, hazard), self.list.len());
            self.list.push(finding);
        }
    }
}
