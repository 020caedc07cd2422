//! Calls: callee, arguments and memory.

use super::{Clif, Lanes, State, Unsupported};
use crate::memory::{Memory, Region};
use crate::path::Path;
use crate::term::{Term, WORD};
use cranelift_codegen::ir::{self, InstructionData, Opcode, SigRef, Signature};
use cranelift_naplespu::{intrinsics, runtime};

/// The callee of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function by name, with `%`.
    Name(String),
    /// The function at an address.
    Address(Term),
}

/// A call.
#[derive(Clone)]
pub struct Call {
    /// The callee.
    pub callee: Callee,
    /// Its signature.
    pub signature: Signature,
    /// The path condition of the call.
    pub path: Path,
    /// The arguments.
    pub arguments: Vec<Lanes>,
    /// The results.
    pub results: Vec<Lanes>,
    /// Memory at the call.
    pub memory: Memory,
    /// Whether an address in the frame escapes to the callee.
    pub frame_escapes: bool,
}

impl Clif<'_> {
    /// Executes a call. Returns `None` for other instructions.
    pub(super) fn call(&mut self, inst: ir::Inst, state: &mut State) -> Result<Option<Vec<Lanes>>, Unsupported> {
        let (callee, sig, args): (Callee, SigRef, Vec<ir::Value>) = match self.func.dfg.insts[inst] {
            InstructionData::Call {
                opcode: Opcode::Call,
                func_ref,
                ref args,
            } => {
                let data = &self.func.dfg.ext_funcs[func_ref];
                let name = data.name.display(Some(&self.func.params)).to_string();
                let bare = name.trim_start_matches('%');
                // The compiler replaces these calls by instructions, or relies on their effects.
                if intrinsics::is_reserved(bare) || runtime::is_reserved(bare) {
                    return Err(Unsupported::inst(format_args!("a call of {name}")));
                }
                let args = args.as_slice(&self.func.dfg.value_lists).to_vec();
                (Callee::Name(name), data.signature, args)
            }
            InstructionData::CallIndirect {
                opcode: Opcode::CallIndirect,
                sig_ref,
                ref args,
            } => {
                let args = args.as_slice(&self.func.dfg.value_lists);
                let Some((&callee, args)) = args.split_first() else {
                    return Ok(None);
                };
                let address = self.number(state, callee)?;
                let address = match self.pool.width(address) {
                    WORD => address,
                    _ => self.pool.extract(WORD - 1, 0, address),
                };
                (Callee::Address(address), sig_ref, args.to_vec())
            }
            _ => return Ok(None),
        };
        let signature = self.func.dfg.signatures[sig].clone();
        let by_value = |param: &ir::AbiParam| matches!(param.purpose, ir::ArgumentPurpose::StructArgument(_));
        if signature.params.iter().any(by_value) {
            return Err(Unsupported::inst("a call with a structure as argument"));
        }
        let arguments: Vec<Lanes> = args
            .iter()
            .map(|&arg| self.value(state, arg))
            .collect::<Result<_, _>>()?;
        let number = self.out.calls.len();
        let mut results = Vec::new();
        for (at, param) in signature.returns.iter().enumerate() {
            let lanes = (0..param.value_type.lane_count())
                .map(|lane| {
                    self.pool
                        .var(&format!("call{number}_result{at}_{lane}"), param.value_type.lane_bits())
                })
                .collect();
            results.push(lanes);
        }
        let frame_escapes = self.frame_escapes(state, &arguments);
        self.out.calls.push(Call {
            callee,
            signature,
            path: state.path.clone(),
            arguments,
            results: results.clone(),
            memory: state.memory.clone(),
            frame_escapes,
        });
        self.layout
            .after_call(self.pool, &mut state.memory, number, frame_escapes);
        Ok(Some(results))
    }

    /// Returns whether an address in the frame is an argument, or was stored where the callee may
    /// find it.
    fn frame_escapes(&mut self, state: &State, arguments: &[Lanes]) -> bool {
        let mut roots: Vec<Term> = arguments.iter().flatten().copied().collect();
        for region in [Region::Main, Region::Scratchpad] {
            roots.extend(state.memory.written(region).map(|(_, value)| value));
        }
        for call in &self.out.calls {
            if call.frame_escapes {
                return true;
            }
        }
        self.pool.cone(&roots).contains(&self.layout.sp)
    }
}
