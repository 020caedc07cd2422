//! Evaluates a CLIF function on numbers with this crate's semantics, for comparison with
//! Cranelift's interpreter.

use crate::abi::FloatUnit;
use crate::abi::{Layout, initial_register};
use crate::clif::{Clif, ExitKind, Limits};
use crate::term::eval::Evaluator;
use crate::term::{Bits, Pool, WORD};
use cranelift_codegen::ir::Function;
use cranelift_naplespu::abi::sig::{Place, SigInfo};
use cranelift_naplespu::code::FrameLayout;

/// The result of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// It returns these numbers.
    Results(Vec<u128>),
    /// It traps with this code.
    Trap(u8),
}

/// Evaluates a function whose arguments are in registers.
///
/// # Errors
///
/// The construct without semantics, in words.
pub fn meaning(func: &Function, args: &[u128]) -> Result<Meaning, String> {
    let mut pool = Pool::new();
    let sig = SigInfo::new(&func.signature, "a function").map_err(|error| error.to_string())?;
    let layout = Layout::new(&mut pool, func, sig, FrameLayout::default(), FloatUnit::None);
    let limits = Limits {
        visits: 1000,
        terms: 1_000_000,
    };
    let out = Clif::run(func, &mut pool, &layout, limits).map_err(|why| why.0)?;
    let mut values = Evaluator::new(0);
    for (places, &arg) in layout.sig.args.iter().zip(args) {
        for (at, place) in places.iter().enumerate() {
            let Place::Reg(reg) = *place else {
                return Err("an argument is not in registers".to_owned());
            };
            let register = initial_register(&mut pool, reg, 0);
            values.set(&pool, register, Bits::from(arg >> (WORD * at as u32)));
        }
    }
    for (kind, state) in out.exits {
        let here = state.path.condition(&mut pool);
        if values.value(&pool, here).is_zero() {
            continue;
        }
        return match kind {
            ExitKind::Trap(code) => Ok(Meaning::Trap(code)),
            ExitKind::Cut => Err("a loop is too long".to_owned()),
            ExitKind::Return => {
                let mut results = Vec::new();
                for lanes in state.results {
                    let whole = pool.of_words(&lanes);
                    results.push(values.value(&pool, whole).low128());
                }
                Ok(Meaning::Results(results))
            }
        };
    }
    Err("no way through the function is taken".to_owned())
}
