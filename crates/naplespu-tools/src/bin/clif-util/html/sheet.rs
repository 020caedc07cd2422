//! The data of one function on the page.

use super::clif::{self, Line, Origin};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Inst};
use cranelift_naplespu::explain::{Explained, Explanation};
use cranelift_naplespu::{CompileError, CompiledCode, Isa, StageRequest};
use naplespu_jit::InstCycles;
use naplespu_jit::parallel::Worker;
use naplespu_reader::FunctionCase;
use npu_mc::InstDesc;
use npu_mc::machine::INSTRUCTION_SIZE;
use std::collections::HashMap;

/// A word of the code or of the constants after it.
pub struct Word {
    /// The bytes, in the order of memory.
    pub bytes: [u8; 4],
    /// The instruction as text, with relocations and annotations; constants as data.
    pub text: String,
    /// The label before the word.
    pub label: Option<String>,
    /// The instruction, if the word is code.
    pub desc: Option<&'static InstDesc>,
    /// The cycles of the instruction, or `None` if it was not executed.
    pub cycles: Option<InstCycles>,
}

/// One function in all its forms.
pub struct Sheet {
    /// The name as CLIF prints it.
    pub name: String,
    /// The input function.
    pub clif: Vec<Line>,
    /// The function before lowering.
    pub opt: Vec<Line>,
    /// The origins of the instructions of `opt`.
    pub origins: HashMap<Inst, Origin>,
    /// The function that was compiled, with calls inlined.
    pub func: Function,
    /// The VCode with its provenance.
    pub explanation: Explanation,
    /// The code, word by word.
    pub words: Vec<Word>,
    /// The compiled code with its tables.
    pub code: CompiledCode,
}

impl Sheet {
    /// Compiles the function.
    ///
    /// # Errors
    ///
    /// The reason why it does not compile.
    pub fn new(isa: &Isa, worker: &mut Worker, case: &FunctionCase, func: &Function) -> Result<Self, CompileError> {
        let Worker { compiler, ctx } = worker;
        ctx.clear();
        ctx.func = func.clone();
        let numbers = clif::number(&mut ctx.func);
        let (code, explanation) =
            compiler.compile_explained(isa, ctx, &mut ControlPlane::default(), StageRequest::default())?;
        let origins = numbers.origins(&mut ctx.func);
        Ok(Self {
            name: case.name.clone(),
            clif: clif::lines(func),
            opt: clif::lines(&ctx.func),
            origins,
            words: words(&code, &explanation, &code.asm(Some(&func.params))),
            func: func.clone(),
            explanation,
            code,
        })
    }

    /// Returns the provenance of the word at an index, or `None` after the code.
    pub fn explained(&self, index: usize) -> Option<&Explained> {
        self.explanation.insts.get(index)
    }
}

/// Returns the words with their text in the assembly.
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
