//! The runtime as compiled code sees it: routines for what the machine has no instruction for. The routines themselves are CLIF, in
//! the crate `naplespu-runtime`, and are compiled by this back end when a program needs them.
//!
//! They use the convention that CLIF spells `preserve_all`, or `probestack` where there is a result: only the first few
//! caller-saved registers change, so that a call costs its caller little. What library calls name (`memcpy` and its like) is
//! called as those are, with `system_v`.

pub use crate::routine::Routine;

use crate::abi::sig::SigInfo;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use std::sync::OnceLock;

impl Routine {
    /// Where its arguments and results are; nowhere if the convention has no place for them, which a test excludes.
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

/// A routine that calls another one, for scalars, on every lane of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneRoutine {
    /// Of one vector.
    One,
    /// Of two.
    Two,
    /// Of three.
    Three,
}

impl LaneRoutine {
    /// The one for this many vectors, which are one to three.
    pub fn of(vectors: usize) -> Self {
        match vectors {
            0 | 1 => Self::One,
            2 => Self::Two,
            _ => Self::Three,
        }
    }

    /// Its name, without the `%` of CLIF.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "__npu_lanes_1",
            Self::Two => "__npu_lanes_2",
            Self::Three => "__npu_lanes_3",
        }
    }

    /// Where its arguments and its result are; nowhere if the convention has no place for them, which a test excludes.
    pub fn signature(self) -> Option<SigInfo> {
        let mut sig = Signature::new(CallConv::Probestack);
        sig.params.push(AbiParam::new(types::I32));
        sig.params.resize(2 + self as usize, AbiParam::new(types::I32X16));
        sig.returns.push(AbiParam::new(types::I32X16));
        SigInfo::new(&sig, self.name()).ok()
    }
}

/// The name as the compiler itself has it, if it refers to a routine of that name.
pub(crate) fn static_name(name: &str) -> Option<&'static str> {
    let lanes = [LaneRoutine::One, LaneRoutine::Two, LaneRoutine::Three];
    let known = Routine::ALL.iter().map(|routine| routine.name());
    let known = known
        .chain(lanes.map(LaneRoutine::name))
        .chain(crate::intrinsics::routine_names());
    known.into_iter().find(|known| *known == name)
}

/// Whether a name is one of the runtime's.
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
