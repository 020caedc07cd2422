//! Reports of errata whose outcome depends on timing or on undriven nets.

use npu_mc::errata::Erratum;
use std::collections::HashMap;
use std::fmt;

/// The maximum number of distinct findings in the list; further ones are only counted.
const FINDING_LIMIT: usize = 4096;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// The target of a taken branch used the result of a long-latency instruction before the
    /// branch.
    LostResult,
    /// A call through a register, which sets the wrong return address.
    IndirectCall,
    /// A write of the upper half of `rm` cleared the lane mask, and the next instruction does not
    /// set it.
    HalfMask,
    /// A thread waits for an instruction line that another thread requested, and the line was
    /// requested and replaced shortly before: the thread never fetches again.
    RepeatedLineMiss,
    /// The program used the undriven bits 31:16 of a vector integer compare.
    UndrivenBits,
    /// `shuffle` or `getlane` with an index above 15.
    LaneIndex,
    /// A scalar result of a float operation on vectors while lane 0 is off.
    StaleFloat,
    /// A vector write to `v59` changed the lane mask at an undefined time.
    MaskByV59,
    /// The instruction after a misaligned access may or may not have executed.
    ImpreciseTrap,
    /// A read of a control register that does not exist.
    ControlRegister,
    /// An operation that the hardware does not define, or that leaves earlier results in its
    /// destination.
    UndefinedOperation,
    /// An R instruction with destination number 63, which the hardware takes as a jump.
    Destination63,
    /// A scratchpad vector access with an empty lane mask, which never completes.
    EmptyMask,
    /// A `dcache_inv` cleared the dirty bits of another line, whose stores are lost. The position
    /// of a line depends on all earlier cache accesses.
    InvalidateWay0,
    /// With several cores, a `dcache_inv` of a line that the core has only read never completes.
    InvalidationOfReadLine,
    /// A flush of a line that other cores share and this core does not have: the next store hangs.
    FlushOfSharedLine,
    /// A modified line leaves the data cache while another core loads it.
    EvictionDuringLoad,
    /// A store to a line with several readers can complete before all copies are invalidated.
    LateAcknowledgment,
    /// A line leaves the data cache while another core's store requests it: the store never completes.
    EvictionDuringStore,
    /// A load returns a value that an earlier completed store has replaced.
    StaleCopy,
    /// A barrier whose number names a tile without a core never opens.
    BarrierWithoutMaster,
    /// In a non-coherent region, a read overtakes the write of the line to memory.
    NonCoherentReload,
    /// In a non-coherent region, a store misses and replaces another line: later misses hang.
    NonCoherentStoreMiss,
    /// In a non-coherent region, a load meets the eviction of its line as a coherent one.
    EvictionBeforeNonCoherentLoad,
}

/// The origin of the name of a hazard.
enum Origin {
    /// A td erratum: compiled code can meet it.
    Erratum(Erratum),
    /// A hazard without a td record.
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
            Hazard::InvalidationOfReadLine => Origin::Erratum(Erratum::InvalidationOfReadLine),
            Hazard::FlushOfSharedLine => Origin::Erratum(Erratum::FlushOfSharedLine),
            Hazard::EvictionDuringLoad => Origin::Erratum(Erratum::EvictionDuringLoad),
            Hazard::LateAcknowledgment => Origin::Erratum(Erratum::LateAcknowledgment),
            Hazard::BarrierWithoutMaster => Origin::Erratum(Erratum::BarrierWithoutMaster),
            Hazard::NonCoherentReload => Origin::Erratum(Erratum::NonCoherentReload),
            Hazard::NonCoherentStoreMiss => Origin::Erratum(Erratum::NonCoherentStoreMiss),
            Hazard::EvictionBeforeNonCoherentLoad => Origin::Erratum(Erratum::EvictionBeforeNonCoherentLoad),
            Hazard::EvictionDuringStore => Origin::Erratum(Erratum::EvictionDuringStore),
            Hazard::StaleCopy => Origin::Name("stale_copy"),
            Hazard::LaneIndex => Origin::Name("lane_index_above_15"),
            Hazard::StaleFloat => Origin::Name("stale_scalar_float_result"),
            Hazard::ImpreciseTrap => Origin::Name("imprecise_trap"),
            Hazard::ControlRegister => Origin::Name("undefined_control_register"),
            Hazard::UndefinedOperation => Origin::Name("undefined_operation"),
            Hazard::InvalidateWay0 => Origin::Name("invalidate_clears_way_0"),
        }
    }

    /// The erratum record in `td/`, if compiled code can meet it.
    pub const fn erratum(self) -> Option<Erratum> {
        match self.origin() {
            Origin::Erratum(erratum) => Some(erratum),
            Origin::Name(_) => None,
        }
    }

    /// The name of the erratum record, or a name in the same style for a hazard without a record.
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
    /// The kind.
    pub hazard: Hazard,
    /// The address of the instruction.
    pub pc: u32,
    /// The number of the first thread that met it.
    pub thread: u32,
    /// A description with the registers and addresses involved.
    pub detail: String,
    /// How often threads met it at this address.
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
    /// The number of all reports, including repeated and dropped ones.
    pub total: u64,
    /// In strict mode, the first report since the last one was taken.
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

    /// Records a finding; `detail` is evaluated only for a new one.
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
