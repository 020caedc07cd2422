//! The stack limit: the lowest address that the frame of a function may reach.
//!
//! CLIF describes the limit as a global value: the context pointer (`vmctx`) or the address of a
//! symbol, followed by sums and loads. The prologue computes the limit and checks it before it
//! makes the frame. The check is therefore not part of the VCode.

use super::sig::{Place, SigInfo};
use crate::code::RelocTarget;
use cranelift_codegen::ir::{ArgumentPurpose, Function, GlobalValueData, types};

/// The first value of the computation of the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A pointer argument.
    Argument(Place),
    /// The address of a symbol, plus a constant.
    Symbol(RelocTarget, i64),
}

/// One step of the computation after the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Adds a constant.
    Add(i64),
    /// Loads the word at this offset in bytes.
    Load(i32),
}

/// The computation of the stack limit at the entry of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLimit {
    /// The first value.
    pub base: Base,
    /// The operations on the base, in order.
    pub steps: Vec<Step>,
}

impl StackLimit {
    /// Returns the stack limit of the function, or `None` if it has none.
    ///
    /// # Errors
    ///
    /// Returns the reason if the limit cannot be computed.
    pub fn new(func: &Function, sig: &SigInfo) -> Result<Option<Self>, &'static str> {
        let Some(mut at) = func.stack_limit else {
            return Ok(None);
        };
        let mut steps = Vec::new();
        // A chain with more steps than there are global values is cyclic.
        for _ in 0..func.global_values.len() {
            let (step, next) = match &func.global_values[at] {
                GlobalValueData::VMContext => {
                    steps.reverse();
                    let base = context(func, sig).ok_or("it is based on `vmctx`, which is not an i32 argument")?;
                    return Ok(Some(Self { base, steps }));
                }
                GlobalValueData::Symbol { tls: true, .. } => return Err("it is based on a thread-local symbol"),
                GlobalValueData::Symbol { name, offset, .. } => {
                    steps.reverse();
                    let base = Base::Symbol(RelocTarget::Name(name.clone()), offset.bits());
                    return Ok(Some(Self { base, steps }));
                }
                GlobalValueData::Load {
                    base,
                    offset,
                    global_type: types::I32,
                    ..
                } => (Step::Load((*offset).into()), *base),
                GlobalValueData::IAddImm {
                    base,
                    offset,
                    global_type: types::I32,
                } => (Step::Add(offset.bits()), *base),
                GlobalValueData::Load { .. } | GlobalValueData::IAddImm { .. } => {
                    return Err("its global values are not all of type i32");
                }
                GlobalValueData::DynScaleTargetConst { .. } => return Err("it is based on the size of a dynamic type"),
            };
            steps.push(step);
            at = next;
        }
        Err("its global values are cyclic")
    }
}

/// Returns the location in which the context pointer arrives.
fn context(func: &Function, sig: &SigInfo) -> Option<Base> {
    let index = func.signature.special_param_index(ArgumentPurpose::VMContext)?;
    let is_word = func.signature.params[index].value_type == types::I32;
    let place = sig.args.get(index)?.first().filter(|_| is_word)?;
    Some(Base::Argument(*place))
}
