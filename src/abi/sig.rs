//! Assigns the arguments and results of a CLIF signature to registers and memory.
//!
//! The conventions are `CC_NaplesPU` and `RetCC_NaplesPU` of `td/NaplesPUCallingConv.td`. Results
//! for which no register is left are written to an area of the caller's frame. Its address is
//! passed as an additional argument after the others.

use super::registers::RegisterSet;
use crate::error::{CompileError, Refusal};
use crate::{legalize, shape};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, Function, SigRef, Signature, types};
use cranelift_codegen::isa::CallConv;
use npu_mc::cc::{self, Convention, Loc, ValueType};
use npu_mc::env::GPR32;
use npu_mc::machine::{STACK_ALIGN, VECTOR_SLOT, WORD_SLOT};
use npu_mc::{Reg, SReg};
use smallvec::SmallVec;
use std::rc::Rc;
use std::sync::OnceLock;

/// The locations of one value, low word first.
pub type Places = SmallVec<[Place; 2]>;

/// The location of one word or vector of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a register.
    Reg(Reg),
    /// In memory, at this offset in bytes in the area for stack arguments or for results.
    Memory(u32),
}

/// The locations of all arguments and results of a signature.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SigInfo {
    /// The arguments.
    pub args: Vec<Places>,
    /// The results.
    pub rets: Vec<Places>,
    /// The location of the address of the result area, if the signature needs one.
    pub ret_area: Option<Place>,
    /// The size of the result area in bytes.
    pub ret_area_size: u32,
    /// The size of the area for stack arguments in bytes.
    pub stack_args: u32,
    /// The number of bytes by which the stack pointer has grown when the function returns. With the
    /// convention `tail`, the callee removes its stack arguments.
    pub popped: u32,
    /// The index of the `sret` argument and the result register for it, if the function returns it.
    pub returned_pointer: Option<(usize, Reg)>,
    /// The registers that the function may change.
    pub registers: RegisterSet,
}

/// The signatures of the calls of a function. Each is computed once.
#[derive(Debug, Default)]
pub(crate) struct CalleeSignatures(SecondaryMap<SigRef, Option<Rc<SigInfo>>>);

impl CalleeSignatures {
    /// Returns the locations of a signature of the function.
    ///
    /// # Errors
    ///
    /// See [`SigInfo::new`].
    pub fn get(&mut self, func: &Function, sig: SigRef) -> Result<Rc<SigInfo>, CompileError> {
        if let Some(known) = &self.0[sig] {
            return Ok(known.clone());
        }
        let info = Rc::new(SigInfo::new(&func.dfg.signatures[sig], &func.name.to_string())?);
        self.0[sig] = Some(info.clone());
        Ok(info)
    }
}

/// Assigns locations to parameters one after the other.
struct Placer {
    convention: &'static Convention,
    state: cc::State,
    found: Vec<cc::Place>,
}

impl Placer {
    fn new(convention: &'static Convention) -> Self {
        Self {
            convention,
            state: cc::State::new(),
            found: Vec::new(),
        }
    }

    /// Returns the locations of a value, or `None` if the convention has no location left for it.
    fn place(&mut self, ty: ValueType) -> Option<Places> {
        self.found.clear();
        self.state.assign(self.convention, ty, &mut self.found).ok()?;
        let place = |place: &cc::Place| match place.loc {
            Loc::Reg(reg) => Place::Reg(reg),
            Loc::Stack { offset, .. } => Place::Memory(offset),
        };
        Some(self.found.iter().map(place).collect())
    }

    /// Returns the locations of an argument. It is in memory if no register is left.
    fn argument(&mut self, ty: ValueType) -> Result<Places, CompileError> {
        let places = self.place(ty);
        places.ok_or_else(|| CompileError::internal("abi", format_args!("{ty:?}"), "a place for every argument"))
    }
}

impl SigInfo {
    /// Returns a signature without arguments and results.
    pub fn empty() -> Self {
        Self {
            args: Vec::new(),
            rets: Vec::new(),
            ret_area: None,
            ret_area_size: 0,
            stack_args: 0,
            popped: 0,
            returned_pointer: None,
            registers: RegisterSet::All,
        }
    }

    /// Assigns locations to all arguments and results of the signature.
    ///
    /// # Errors
    ///
    /// Returns [`CompileError::Unsupported`] if the back end cannot pass one of the types or
    /// purposes.
    pub fn new(sig: &Signature, function: &str) -> Result<Self, CompileError> {
        let mut refusals = Vec::new();
        let mut refuse = |what: String, help: &str| {
            refusals.push(Refusal {
                function: function.to_owned(),
                inst: None,
                srcloc: None,
                what,
                help: Some(help.to_owned()),
            });
        };
        let registers = match sig.call_conv {
            CallConv::Fast
            | CallConv::SystemV
            | CallConv::Tail
            | CallConv::Winch
            | CallConv::AppleAarch64
            | CallConv::WindowsFastcall => RegisterSet::All,
            // Cranelift's verifier rejects results with `preserve_all`, so routines with a result
            // use `probestack`.
            CallConv::PreserveAll | CallConv::Probestack => RegisterSet::PreserveAll,
        };
        let mut check = |param: &AbiParam, role: &str| -> SmallVec<[ValueType; 4]> {
            let by_value = matches!(param.purpose, ArgumentPurpose::StructArgument(_));
            if by_value && param.value_type != types::I32 {
                refuse(
                    format!("{role} of type {} with purpose {}", param.value_type, param.purpose),
                    "a structure is passed by its address, an i32",
                );
            }
            let types = shape::passed_as(param.value_type);
            types.unwrap_or_else(|| {
                refuse(
                    format!("{role} of type {}", param.value_type),
                    legalize::unsupported().nearest_form,
                );
                SmallVec::new()
            })
        };

        let mut rets = Placer::new(&cc::RETURNS);
        let mut ret_places = Vec::with_capacity(sig.returns.len());
        let mut ret_area_size: u32 = 0;
        for param in &sig.returns {
            let mut places = Places::new();
            for ty in check(param, "a result") {
                // The words of one value are either all in registers or all in memory.
                places.extend(rets.place(ty).unwrap_or_else(|| {
                    let (size, words) = memory_shape(ty);
                    let start = ret_area_size.next_multiple_of(size);
                    ret_area_size = start + size * words;
                    (0..words).map(|word| Place::Memory(start + word * size)).collect()
                }));
            }
            ret_places.push(places);
        }

        let mut args = Placer::new(&cc::ARGUMENTS);
        let mut arg_places = Vec::with_capacity(sig.params.len());
        for param in &sig.params {
            let mut places = Places::new();
            for ty in check(param, "an argument") {
                places.extend(args.argument(ty)?);
            }
            arg_places.push(places);
        }
        let ret_area = match ret_area_size {
            0 => None,
            _ => args.argument(ValueType::I32)?.first().copied(),
        };

        if refusals.is_empty() {
            let stack_args = args.state.stack_size();
            let popped = match sig.call_conv {
                CallConv::Tail => stack_args.next_multiple_of(STACK_ALIGN),
                _ => 0,
            };
            Ok(Self {
                args: arg_places,
                rets: ret_places,
                ret_area,
                ret_area_size,
                stack_args,
                popped,
                returned_pointer: returned_pointer(sig),
                registers,
            })
        } else {
            Err(CompileError::Unsupported(refusals))
        }
    }
}

/// Returns the index of the argument that the function also returns, and the result register. As in
/// C, this is the address of the result (`docs/abi.md`). Returns `None` for the convention `tail`:
/// the last callee of a chain of tail calls may not have this argument.
fn returned_pointer(sig: &Signature) -> Option<(usize, Reg)> {
    let like_c = match sig.call_conv {
        CallConv::Fast | CallConv::SystemV | CallConv::Winch | CallConv::AppleAarch64 | CallConv::WindowsFastcall => {
            true
        }
        CallConv::Tail | CallConv::PreserveAll | CallConv::Probestack => false,
    };
    let index = sig.special_param_index(ArgumentPurpose::StructReturn)?;
    let is_word = sig.params[index].value_type == types::I32;
    let places = Placer::new(&cc::RETURNS).place(ValueType::I32)?;
    match places.first() {
        Some(&Place::Reg(reg)) if like_c && is_word && sig.returns.is_empty() => Some((index, reg)),
        _ => None,
    }
}

/// Returns the registers that can carry scalar arguments.
pub fn argument_registers() -> &'static [Reg] {
    static LIST: OnceLock<Vec<Reg>> = OnceLock::new();
    LIST.get_or_init(|| {
        let mut placer = Placer::new(&cc::ARGUMENTS);
        std::iter::from_fn(|| match placer.place(ValueType::I32)?.first() {
            Some(&Place::Reg(reg)) => Some(reg),
            _ => None,
        })
        .collect()
    })
}

/// Returns the register in which an exception handler receives the stack pointer of its frame. It
/// follows the payload registers, which are the first argument registers.
pub fn handler_stack_pointer() -> Option<Reg> {
    let carried = CallConv::SystemV.exception_payload_types(types::I32).len();
    argument_registers().get(carried).copied()
}

/// Returns the scalars that are free at the entry of a function: the caller-saved ones that carry
/// no arguments. Registers that every convention may change come first.
pub fn free_at_entry() -> &'static [SReg] {
    static LIST: OnceLock<Vec<SReg>> = OnceLock::new();
    LIST.get_or_init(|| {
        let all = GPR32.preferred.iter().filter_map(|&number| SReg::new(number));
        all.filter(|&reg| !argument_registers().contains(&Reg::S(reg)))
            .collect()
    })
}

/// Returns the size of one word or vector of a value in memory, which is also its alignment, and
/// the number of words.
fn memory_shape(ty: ValueType) -> (u32, u32) {
    if ty.lanes() > 1 {
        (VECTOR_SLOT, 1)
    } else {
        (WORD_SLOT, ty.bits().div_ceil(8 * WORD_SLOT))
    }
}
