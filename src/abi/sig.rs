//! From a CLIF signature to the places of its arguments and results, by `CC_NaplesPU` and `RetCC_NaplesPU` of
//! `td/NaplesPUCallingConv.td`.
//!
//! Results that find no register are written to an area of the caller's frame, whose address is passed as one more
//! argument after the others.

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

/// The places of one value, low word first.
pub type Places = SmallVec<[Place; 2]>;

/// Where one word or vector of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a register.
    Reg(Reg),
    /// In memory, this many bytes into the area for stack arguments or for results.
    Memory(u32),
}

/// A signature with the place of everything.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SigInfo {
    /// The arguments.
    pub args: Vec<Places>,
    /// The results.
    pub rets: Vec<Places>,
    /// Where the address of the area for results is passed, if there is one.
    pub ret_area: Option<Place>,
    /// Size of the area for results, in bytes.
    pub ret_area_size: u32,
    /// Size of the area for stack arguments, in bytes.
    pub stack_args: u32,
    /// How much higher the stack pointer is when the function returns: with the convention `tail`, it removes its stack
    /// arguments.
    pub popped: u32,
    /// The index of the `sret` argument, if the function returns it, and the register for it.
    pub returned_pointer: Option<(usize, Reg)>,
    /// Which registers the function may change.
    pub registers: RegisterSet,
}

/// The signatures that the calls of a function use, each made once.
#[derive(Debug, Default)]
pub(crate) struct CalleeSignatures(SecondaryMap<SigRef, Option<Rc<SigInfo>>>);

impl CalleeSignatures {
    /// The places of a signature of the function.
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

/// Places parameters one after the other.
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

    /// The places of a value; none if the convention has no place left for it.
    fn place(&mut self, ty: ValueType) -> Option<Places> {
        self.found.clear();
        self.state.assign(self.convention, ty, &mut self.found).ok()?;
        let place = |place: &cc::Place| match place.loc {
            Loc::Reg(reg) => Place::Reg(reg),
            Loc::Stack { offset, .. } => Place::Memory(offset),
        };
        Some(self.found.iter().map(place).collect())
    }

    /// The places of an argument, which is put into memory when the registers are used up.
    fn argument(&mut self, ty: ValueType) -> Result<Places, CompileError> {
        let places = self.place(ty);
        places.ok_or_else(|| CompileError::internal("abi", format_args!("{ty:?}"), "a place for every argument"))
    }
}

impl SigInfo {
    /// A signature without arguments and results.
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

    /// Places everything in the signature.
    ///
    /// # Errors
    ///
    /// [`CompileError::Unsupported`] with what cannot be passed: a type, a purpose, a calling convention.
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
            // Cranelift's verifier allows no results with `preserve_all`, so routines that have one say `probestack`.
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
                // The convention is all or nothing for one value: its words are not torn between registers and memory.
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

/// Which argument a function returns beside what its signature says, and where: as in C, the address of the result that it
/// was given (`docs/abi.md`). Not with the convention `tail`, where the last callee may know nothing of it.
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

/// The registers that can carry scalar arguments.
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

/// Where an exception handler finds the stack pointer of its frame: behind the registers of what exceptions carry, which are those
/// of the first arguments.
pub fn handler_stack_pointer() -> Option<Reg> {
    let carried = CallConv::SystemV.exception_payload_types(types::I32).len();
    argument_registers().get(carried).copied()
}

/// The scalars that hold nothing when a function starts or is jumped to: caller-saved, and no arguments. Those that
/// every convention may change come first.
pub fn free_at_entry() -> &'static [SReg] {
    static LIST: OnceLock<Vec<SReg>> = OnceLock::new();
    LIST.get_or_init(|| {
        let all = GPR32.preferred.iter().filter_map(|&number| SReg::new(number));
        all.filter(|&reg| !argument_registers().contains(&Reg::S(reg)))
            .collect()
    })
}

/// Size and alignment of one word or vector of a value in memory, and how many it has.
fn memory_shape(ty: ValueType) -> (u32, u32) {
    if ty.lanes() > 1 {
        (VECTOR_SLOT, 1)
    } else {
        (WORD_SLOT, ty.bits().div_ceil(8 * WORD_SLOT))
    }
}
