//! The limit of the stack: how a function finds out the lowest address that its frame may reach.
//!
//! CLIF gives the limit as a global value, made from the context pointer (`vmctx`), the address of a symbol, sums and loads. The
//! check comes first, before the frame is made, so it is code of the prologue and no VCode.

use super::sig::{Place, SigInfo};
use crate::code::RelocTarget;
use cranelift_codegen::ir::{ArgumentPurpose, Function, GlobalValueData, types};

/// Where the computation of the limit starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A pointer among the arguments.
    Argument(Place),
    /// The address of a symbol, plus a constant.
    Symbol(RelocTarget, i64),
}

/// How it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A constant is added.
    Add(i64),
    /// The word at this distance is loaded.
    Load(i32),
}

/// The limit of the stack, ready to be computed at entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLimit {
    /// The first value.
    pub base: Base,
    /// What is done with it, in order.
    pub steps: Vec<Step>,
}

impl StackLimit {
    /// The limit that the function names; `None` if it names none.
    ///
    /// # Errors
    ///
    /// Why it cannot be computed.
    pub fn new(func: &Function, sig: &SigInfo) -> Result<Option<Self>, &'static str> {
        let Some(mut at) = func.stack_limit else {
            return Ok(None);
        };
        let mut steps = Vec::new();
        // A chain that is longer than there are values goes in a circle.
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
        Err("its global values go in a circle")
    }
}

/// Where the context pointer arrives.
fn context(func: &Function, sig: &SigInfo) -> Option<Base> {
    let index = func.signature.special_param_index(ArgumentPurpose::VMContext)?;
    let is_word = func.signature.params[index].value_type == types::I32;
    let place = sig.args.get(index)?.first().filter(|_| is_word)?;
    Some(Base::Argument(*place))
}
