//! Proves routines of the runtime: the code of a routine computes the operation for which lowering
//! calls it.
//!
//! The operation is a CLIF function with the routine's signature. Routines with loops over their
//! operands (division, square roots) and arithmetic of floats are not in the list; the tests of the
//! runtime compare them with exact arithmetic on samples.

use crate::answer::Answer;
use crate::prove::{Options, prove_code};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_naplespu::Isa;
use rayon::prelude::*;
use std::fmt::Write as _;
use std::sync::Arc;

/// An operation as CLIF: the widths in bits, and the instructions. `{a}` and `{b}` are the operands,
/// and `{r}` is the result.
struct Specification {
    routine: &'static str,
    operands: &'static [u32],
    result: u32,
    body: &'static str,
}

/// The order of two floats as the routines return it: 1 less, 2 equal, 4 greater, 8 unordered.
macro_rules! order {
    ($ty:literal) => {
        concat!(
            "    v100 = bitcast.",
            $ty,
            " {a}\n    v101 = bitcast.",
            $ty,
            " {b}\n",
            "    v102 = fcmp lt v100, v101\n    v103 = fcmp eq v100, v101\n    v104 = fcmp gt v100, v101\n",
            "    v105 = fcmp uno v100, v101\n",
            "    v106 = uextend.i32 v102\n    v107 = uextend.i32 v103\n    v108 = uextend.i32 v104\n    v109 = uextend.i32 v105\n",
            "    v110 = iconst.i32 1\n    v111 = iconst.i32 2\n    v112 = iconst.i32 3\n",
            "    v113 = ishl v107, v110\n    v114 = ishl v108, v111\n    v115 = ishl v109, v112\n",
            "    v116 = bor v106, v113\n    v117 = bor v116, v114\n    {r} = bor v117, v115\n",
        )
    };
}

/// Routine, widths of the operands, width of the result, body.
type Row = (&'static str, &'static [u32], u32, &'static str);

const SPECIFICATIONS: [Row; 11] = [
    ("__npu_mul128", &[128, 128], 128, "    {r} = imul {a}, {b}\n"),
    ("__npu_umulhi128", &[128, 128], 128, "    {r} = umulhi {a}, {b}\n"),
    ("__npu_smulhi128", &[128, 128], 128, "    {r} = smulhi {a}, {b}\n"),
    ("__npu_shl128", &[128, 32], 128, "    {r} = ishl {a}, {b}\n"),
    ("__npu_ushr128", &[128, 32], 128, "    {r} = ushr {a}, {b}\n"),
    ("__npu_sshr128", &[128, 32], 128, "    {r} = sshr {a}, {b}\n"),
    ("__npu_rotl128", &[128, 32], 128, "    {r} = rotl {a}, {b}\n"),
    ("__npu_umulhi64", &[64, 64], 64, "    {r} = umulhi {a}, {b}\n"),
    ("__npu_smulhi64", &[64, 64], 64, "    {r} = smulhi {a}, {b}\n"),
    ("__npu_f64_compare", &[64, 64], 32, order!("f64")),
    ("__npu_f128_compare", &[128, 128], 32, order!("f128")),
];

impl Specification {
    /// Returns the CLIF function.
    fn text(&self) -> String {
        let words: u32 = self.operands.iter().map(|bits| bits / 32).sum();
        let list = |count: u32, item: &dyn Fn(u32) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            "function %{}({}) -> {} probestack {{\nblock0({}):\n",
            self.routine,
            list(words, &|_| "i32".to_owned()),
            list(self.result / 32, &|_| "i32".to_owned()),
            list(words, &|number| format!("v{number}: i32")),
        );
        let mut next = 20;
        let mut first = 0;
        let mut body = self.body.to_owned();
        for (name, bits) in ["{a}", "{b}"].into_iter().zip(self.operands) {
            let mut pieces: Vec<u32> = (first..first + bits / 32).collect();
            first += bits / 32;
            while pieces.len() > 1 {
                let mut wider = Vec::new();
                for pair in pieces.chunks_exact(2) {
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "    v{next} = iconcat v{}, v{}", pair[0], pair[1]);
                    wider.push(next);
                    next += 1;
                }
                pieces = wider;
            }
            body = body.replace(name, &format!("v{}", pieces[0]));
        }
        text += &body.replace("{r}", "v200");
        let mut pieces = vec![200];
        let mut next = 201;
        while pieces.len() < (self.result / 32) as usize {
            let mut narrower = Vec::new();
            for piece in pieces {
                let _ = writeln!(text, "    v{next}, v{} = isplit v{piece}", next + 1);
                narrower.extend([next, next + 1]);
                next += 2;
            }
            pieces = narrower;
        }
        let results: Vec<String> = pieces.iter().map(|piece| format!("v{piece}")).collect();
        let _ = writeln!(text, "    return {}\n}}", results.join(", "));
        text
    }
}

/// Proves the routines that have a specification, for the settings of `isa`.
///
/// # Errors
///
/// The specification of a routine is not valid CLIF, or the routine does not compile.
pub fn prove_routines(isa: &Isa, options: &Options) -> Result<Vec<Answer>, String> {
    let isa = Arc::new(isa.for_runtime());
    SPECIFICATIONS
        .par_iter()
        .map(|&(routine, operands, result, body)| {
            let specification = Specification {
                routine,
                operands,
                result,
                body,
            };
            let name = routine;
            let functions =
                cranelift_reader::parse_functions(&specification.text()).map_err(|error| format!("{name}: {error}"))?;
            let func = functions.first().ok_or_else(|| format!("{name}: no function"))?;
            let routine = naplespu_runtime::function(name)?.ok_or_else(|| format!("{name}: no routine"))?;
            let mut ctx = Context::for_function(routine.clone());
            let code = isa
                .compile(&mut ctx, &mut ControlPlane::default())
                .map_err(|error| format!("{name}: {error}"))?;
            Ok(prove_code(func, &code, &isa, options))
        })
        .collect()
}
