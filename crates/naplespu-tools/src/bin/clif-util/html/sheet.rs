//! All that the page shows of one function.

use super::clif::{self, Line, Origin};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Inst;
use cranelift_naplespu::explain::{Explained, Explanation};
use cranelift_naplespu::{CompileError, CompiledCode, Isa, StageRequest};
use naplespu_jit::InstCycles;
use naplespu_jit::parallel::Worker;
use naplespu_reader::FunctionCase;
use npu_mc::InstDesc;
use npu_mc::machine::INSTRUCTION_SIZE;
use std::collections::HashMap;

/// A word of the code, or one of the constants after it.
pub struct Word {
    /// Its bytes, in the order of memory.
    pub bytes: [u8; 4],
    /// The instruction as text, with relocations and the like; as data for constants.
    pub text: String,
    /// The label before it.
    pub label: Option<String>,
    /// The instruction, if it is one of the function's.
    pub desc: Option<&'static InstDesc>,
    /// What it cost; none if it was not run.
    pub cycles: Option<InstCycles>,
}

/// One function in all its forms.
pub struct Sheet {
    /// Its name as CLIF prints it.
    pub name: String,
    /// As it was read.
    pub clif: Vec<Line>,
    /// As it was lowered.
    pub opt: Vec<Line>,
    /// Where the instructions of the latter come from.
    pub origins: HashMap<Inst, Origin>,
    /// The VCode, and why everything is there.
    pub explanation: Explanation,
    /// The code, word by word.
    pub words: Vec<Word>,
    /// The same, with all else that it takes to run it.
    pub code: CompiledCode,
}

impl Sheet {
    /// Compiles the function.
    ///
    /// # Errors
    ///
    /// Why it does not compile.
    pub fn new(isa: &Isa, worker: &mut Worker, case: &FunctionCase) -> Result<Self, CompileError> {
        let Worker { compiler, ctx } = worker;
        ctx.clear();
        ctx.func = case.func.clone();
        let numbers = clif::number(&mut ctx.func);
        let (code, explanation) =
            compiler.compile_explained(isa, ctx, &mut ControlPlane::default(), StageRequest::default())?;
        let origins = numbers.origins(&mut ctx.func);
        Ok(Self {
            name: case.name.clone(),
            clif: clif::lines(&case.func),
            opt: clif::lines(&ctx.func),
            origins,
            words: words(&code, &explanation, &code.asm(Some(&case.func.params))),
            explanation,
            code,
        })
    }

    /// Why the word at an index is there; none for what follows the code.
    pub fn explained(&self, index: usize) -> Option<&Explained> {
        self.explanation.insts.get(index)
    }
}

/// The words with the text that the assembly has for them.
fn words(code: &CompiledCode, explanation: &Explanation, asm: &str) -> Vec<Word> {
    let mut lines = asm.lines().peekable();
    let chunks = code.bytes.chunks_exact(INSTRUCTION_SIZE as usize).enumerate();
    let word = |(index, chunk): (usize, &[u8])| {
        let bytes = [chunk[0], chunk[1], chunk[2], chunk[3]];
        let is_code = index < explanation.insts.len();
        let has_line = index * (INSTRUCTION_SIZE as usize) < code.pool_start as usize;
        let mut label = None;
        let mut text = format!(".long {:#010x}", u32::from_le_bytes(bytes));
        if has_line {
            while let Some(line) = lines.next_if(|line| !line.starts_with(' ')) {
                label = Some(line.split(" ;").next().unwrap_or(line).to_owned());
            }
            text = lines.next().unwrap_or_default().trim_start().to_owned();
        }
        Word {
            bytes,
            text,
            label,
            desc: npu_mc::decode(u32::from_le_bytes(bytes))
                .ok()
                .filter(|_| is_code)
                .map(|inst| inst.desc()),
            cycles: None,
        }
    };
    chunks.map(word).collect()
}
