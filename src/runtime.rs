//! The interface of the runtime: routines for operations that the machine has no instruction for.
//! The crate `naplespu-runtime` contains the routines in CLIF. This back end compiles them when a
//! program needs them.
//!
//! Routines use the convention that CLIF names `preserve_all`, or `probestack` if they have a
//! result. They change only the first few caller-saved registers, so a call costs its caller
//! little. The routines of library calls (`memcpy` and similar) use `system_v`.

pub use crate::routine::Routine;

use crate::abi::sig::SigInfo;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use std::sync::OnceLock;

/// The distance in bytes from the core's word of the lock of all cores to its other line. A store
/// to that line orders a `flush` of the word after an eviction of the word's line
/// (`runtime/machine_enter.s`). The other lines follow the lines of sixteen tiles.
pub const OTHER_LINE: u32 = 1024;

impl Routine {
    /// Returns the locations of the arguments and results. Returns `None` if the convention has no
    /// location for them; a test excludes this case.
    pub fn signature(self) -> Option<&'static SigInfo> {
        static SIGNATURES: OnceLock<Vec<Option<SigInfo>>> = OnceLock::new();
        let all = SIGNATURES.get_or_init(|| {
            let info = |routine: &Self| {
                let (args, results) = routine.words();
                let mut sig = Signature::new(CallConv::Probestack);
                sig.params.resize(args, AbiParam::new(types::I32));
                sig.returns.resize(results, AbiParam::new(types::I32));
                SigInfo::new(&sig, routine.name()).ok()
            };
            Self::ALL.iter().map(info).collect()
        });
        all.get(self as usize)?.as_ref()
    }
}

/// A routine that calls a scalar routine on every lane of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneRoutine {
    /// With one vector argument.
    One,
    /// With two vector arguments.
    Two,
    /// With three vector arguments.
    Three,
}

impl LaneRoutine {
    /// Returns the routine for this number of vectors, which must be 1 to 3.
    pub fn of(vectors: usize) -> Self {
        match vectors {
            0 | 1 => Self::One,
            2 => Self::Two,
            _ => Self::Three,
        }
    }

    /// Returns the name, without the `%` of CLIF.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "__npu_lanes_1",
            Self::Two => "__npu_lanes_2",
            Self::Three => "__npu_lanes_3",
        }
    }

    /// Returns the locations of the arguments and the result. Returns `None` if the convention has
    /// no location for them; a test excludes this case.
    pub fn signature(self) -> Option<SigInfo> {
        let mut sig = Signature::new(CallConv::Probestack);
        sig.params.push(AbiParam::new(types::I32));
        sig.params.resize(2 + self as usize, AbiParam::new(types::I32X16));
        sig.returns.push(AbiParam::new(types::I32X16));
        SigInfo::new(&sig, self.name()).ok()
    }
}

/// Returns the compiler's static copy of the name, if it is the name of a runtime routine that the
/// compiler refers to.
pub(crate) fn static_name(name: &str) -> Option<&'static str> {
    let lanes = [LaneRoutine::One, LaneRoutine::Two, LaneRoutine::Three];
    let known = Routine::ALL.iter().map(|routine| routine.name());
    let known = known
        .chain(lanes.map(LaneRoutine::name))
        .chain(crate::intrinsics::routine_names());
    known.into_iter().find(|known| *known == name)
}

/// Returns whether a name is reserved for the runtime.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("__npu_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_routine_has_a_signature() {
        for routine in Routine::ALL {
            assert!(routine.signature().is_some(), "{}", routine.name());
        }
        for vectors in 1..=3 {
            assert!(LaneRoutine::of(vectors).signature().is_some());
        }
    }
}
