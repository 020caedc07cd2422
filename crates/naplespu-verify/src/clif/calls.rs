//! Calls: callee, arguments and memory.

use super::{Clif, Lanes, State, Unsupported};
use crate::memory::{Memory, Region};
use crate::path::Path;
use crate::term::{Term, WORD};
use cranelift_codegen::ir::{self, InstructionData, Opcode, SigRef, Signature};
use cranelift_naplespu::intrinsics::{self, Reserved};
use cranelift_naplespu::runtime;

/// The callee of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function by name, with `%`.
    Name(String),
    /// The function at an address.
    Address(Term),
    /// An operation on a device.
    Device(Device),
}

/// An operation on a device, with operands in the order of its intrinsic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// Arrival at a barrier.
    Barrier,
    /// Write-back of a cache line.
    Flush,
    /// Write-back and invalidation of a cache line.
    Invalidate,
    /// A write of a control register.
    WriteControl,
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
    /// The arguments. For a structure, its bytes.
    pub arguments: Vec<Lanes>,
    /// The results.
    pub results: Vec<Lanes>,
    /// Memory at the call.
    pub memory: Memory,
    /// Whether an address in the frame escapes to the callee.
    pub frame_escapes: bool,
    /// Whether it is a tail call.
    pub is_tail: bool,
}

impl Clif<'_> {
    /// Executes a call, a tail call or an intrinsic. Returns `None` for other instructions.
    pub(super) fn call(&mut self, inst: ir::Inst, state: &mut State) -> Result<Option<Vec<Lanes>>, Unsupported> {
        let (callee, sig, args): (Callee, SigRef, Vec<ir::Value>) = match self.func.dfg.insts[inst] {
            InstructionData::Call {
                opcode: Opcode::Call | Opcode::ReturnCall,
                func_ref,
                ref args,
            } => {
                let data = &self.func.dfg.ext_funcs[func_ref];
                let name = data.name.display(Some(&self.func.params)).to_string();
                let bare = name.trim_start_matches('%');
                if let Some(Reserved::Intrinsic(info)) = intrinsics::classify(self.func, func_ref) {
                    let args = args.as_slice(&self.func.dfg.value_lists).to_vec();
                    let args: Vec<Lanes> = args
                        .into_iter()
                        .map(|arg| self.value(state, arg))
                        .collect::<Result<_, _>>()?;
                    return self.intrinsic(info, &args, state).map(Some);
                }
                // The compiler relies on the effects of its own routines.
                if intrinsics::is_reserved(bare) || runtime::is_reserved(bare) {
                    return Err(Unsupported::inst(format_args!("a call of {name}")));
                }
                let args = args.as_slice(&self.func.dfg.value_lists).to_vec();
                (Callee::Name(name), data.signature, args)
            }
            InstructionData::CallIndirect {
                opcode: Opcode::CallIndirect | Opcode::ReturnCallIndirect,
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
        let mut arguments: Vec<Lanes> = Vec::new();
        for (param, &arg) in signature.params.iter().zip(&args) {
            let value = self.value(state, arg)?;
            arguments.push(match param.purpose {
                ir::ArgumentPurpose::StructArgument(size) => self.structure(state, &value, size),
                _ => value,
            });
        }
        let is_tail = self.func.dfg.insts[inst].opcode().is_return();
        Ok(Some(self.record_call(callee, signature, arguments, state, is_tail)))
    }

    /// Returns the bytes of a structure at an address.
    fn structure(&mut self, state: &State, address: &Lanes, size: u32) -> Lanes {
        let Some(&address) = address.first() else {
            return Vec::new();
        };
        let region = Memory::region(self.pool, address, self.layout.sp);
        let byte = |at: u32| {
            let offset = self.pool.int(WORD, u64::from(at));
            let address = self.pool.add(address, offset);
            state.memory.load(self.pool, region, address, 1)
        };
        (0..size).map(byte).collect()
    }

    /// Records a call and returns its results. A call may change memory.
    pub(super) fn record_call(
        &mut self,
        callee: Callee,
        signature: Signature,
        arguments: Vec<Lanes>,
        state: &mut State,
        is_tail: bool,
    ) -> Vec<Lanes> {
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
        // A tail call removes the frame.
        let frame_escapes = !is_tail && self.frame_escapes(state, &arguments);
        self.out.calls.push(Call {
            callee,
            signature,
            path: state.path.clone(),
            arguments,
            results: results.clone(),
            memory: state.memory.clone(),
            frame_escapes,
            is_tail,
        });
        self.layout
            .after_call(self.pool, &mut state.memory, number, frame_escapes);
        results
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
