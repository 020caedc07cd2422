//! The routines as text, for the library and the build script.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Block, BlockCall, ExtFuncData, ExternalName, Function, Inst, InstBuilder, UserFuncName, types,
};

/// The name and text of each source.
macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("runtime/", $name, ".clif"),
            include_str!(concat!("../", $name, ".clif")),
        ),)*]
    };
}

/// The sources, by file.
pub const SOURCES: &[(&str, &str)] = sources![
    "div",
    "int64_unsigned",
    "int64_signed",
    "int128",
    "int128_div",
    "f32",
    "f32_fma",
    "f32_sqrt",
    "f32_round",
    "f64_add",
    "f64_mul",
    "f64_div",
    "f64_fma",
    "f64_sqrt",
    "f64_round",
    "f64_compare",
    "f128_parts",
    "f128_add",
    "f128_mul",
    "f128_div",
    "f128_fma",
    "f128_sqrt",
    "f128_round",
    "f128_compare",
    "convert_from_int",
    "convert_from_int128",
    "convert_to_int",
    "convert_to_int128",
    "convert_width",
    "convert_f128",
    "memory",
    "lanes",
    "lane_memory",
    "unwind",
    "atomics",
    "tls",
];

/// Flags without an effect on code.
pub const CHECKS: &[&str] = &["enable_verifier", "regalloc_checker", "regalloc_verbose_logs"];

/// Parses the functions in a part of the source `file`.
///
/// # Errors
///
/// The reader's message if the text is invalid, which a test of this crate excludes.
pub fn parse(file: &str, text: &str) -> Result<Vec<Function>, String> {
    cranelift_reader::parse_functions(text).map_err(|error| format!("{file}:{error}"))
}

/// Returns the function under another name, with the sign of its last argument flipped.
fn difference(sum: &Function, name: &str) -> Option<Function> {
    let mut func = sum.clone();
    func.name = UserFuncName::testcase(name);
    let entry = func.layout.entry_block()?;
    let old = *func.dfg.block_params(entry).last()?;
    let given = func.dfg.replace_block_param(old, types::I32);
    let mut cursor = FuncCursor::new(&mut func).at_first_insertion_point(entry);
    let sign = cursor.ins().iconst(types::I32, i64::from(1u32 << 31));
    let turned = cursor.ins().bxor(given, sign);
    func.dfg.change_to_alias(old, turned);
    Some(func)
}

/// Returns the routine `name`, made from the function in the text of the routine `text_of`.
pub fn made_from(whole: &Function, text_of: &str, name: &str) -> Option<Function> {
    let mut func = whole.clone();
    if SPLIT.contains(&text_of) {
        let rare = rare(text_of);
        if name == rare {
            func.name = UserFuncName::testcase(&rare);
            return Some(func);
        }
        func = without_cold_blocks(&func, &rare)?;
    }
    if name == text_of {
        Some(func)
    } else {
        difference(&func, name)
    }
}

/// Routines whose cold blocks become a separate routine, [`rare`], so that common code occupies
/// fewer lines of the instruction cache. They do not change memory, so the rare routine can restart
/// with the arguments.
pub const SPLIT: &[&str] = &[
    "__npu_f32_fma",
    "__npu_f64_add",
    "__npu_f64_div",
    "__npu_f64_fma",
    "__npu_f64_mul",
    "__npu_f64_sqrt",
];

/// Returns the name of the routine that handles the rare arguments of a routine in [`SPLIT`]. The
/// routine for rare arguments consists of the complete function in the text.
pub fn rare(name: &str) -> String {
    format!("{name}_rare")
}

/// Returns the function with its cold blocks replaced by a call of `rare`, which has the same
/// signature.
fn without_cold_blocks(whole: &Function, rare: &str) -> Option<Function> {
    let mut func = whole.clone();
    let entry = func.layout.entry_block()?;
    let args = func.dfg.block_params(entry).to_vec();
    let signature = func.import_signature(whole.signature.clone());
    let rare = func.import_function(ExtFuncData {
        name: ExternalName::testcase(rare),
        signature,
        colocated: false,
        patchable: false,
    });
    let (cold, warm): (Vec<Block>, Vec<Block>) = func.layout.blocks().partition(|&block| func.layout.is_cold(block));
    let ends: Vec<Inst> = warm.iter().filter_map(|&block| func.layout.last_inst(block)).collect();
    let leaves = func.dfg.make_block();
    func.layout.append_block(leaves);
    func.layout.set_cold(leaves);
    let mut cursor = FuncCursor::new(&mut func).at_bottom(leaves);
    let call = cursor.ins().call(rare, &args);
    let results = cursor.func.dfg.inst_results(call).to_vec();
    cursor.ins().return_(&results);
    for inst in ends {
        let data = &mut func.dfg;
        let to_leave = BlockCall::new(leaves, [], &mut data.value_lists);
        for target in data.insts[inst].branch_destination_mut(&mut data.jump_tables, &mut data.exception_tables) {
            if cold.contains(&target.block(&data.value_lists)) {
                *target = to_leave;
            }
        }
    }
    for block in cold {
        while let Some(inst) = func.layout.first_inst(block) {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
    Some(func)
}
