//! The routines of the runtime as objects; a program links those that it needs.

use crate::builder::{Builder, Contents, DEFAULT_ALIGN, Purpose, Reference};
use crate::frames::Frames;
use crate::front::{Names, Target};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::function::FunctionParameters;
use cranelift_naplespu::code::CompiledCode;
use cranelift_naplespu::{Compiler, Isa};
use npu_link::{Input, Library};
use npu_mc::asm::SymbolKind;
use npu_mc::reloc::Reloc;

/// The runtime, compiled for a target on demand.
pub struct RuntimeLibrary {
    isa: Isa,
    compiler: Compiler,
}

impl RuntimeLibrary {
    /// Creates the runtime for the settings of a target.
    pub fn new(isa: &Isa) -> Self {
        Self {
            isa: isa.for_runtime(),
            compiler: Compiler::new(),
        }
    }

    fn code(&mut self, name: &str) -> Result<Option<CompiledCode>, String> {
        if let Some(code) = naplespu_runtime::compiled(&self.isa, name) {
            return Ok(Some(code));
        }
        let Some(function) = naplespu_runtime::function(name)? else {
            return Ok(None);
        };
        let mut ctx = Context::for_function(function.clone());
        let code = self.compiler.compile(&self.isa, &mut ctx, &mut ControlPlane::default());
        code.map(Some)
            .map_err(|error| format!("{name} of the runtime: {error}"))
    }
}

/// Returns the linker symbols whose addresses initialize a data object of the runtime; none if it
/// is zero-initialized.
fn words_of(name: &str) -> &'static [&'static str] {
    match name {
        naplespu_runtime::TLS => &["__npu_tls_start", "__npu_tls_size"],
        naplespu_runtime::UNWIND_TABLE => &["__npu_unwind_count", "__npu_unwind_start"],
        _ => &[],
    }
}

/// Returns a data object of the runtime.
fn data(name: &str, data: naplespu_runtime::Data) -> Option<Input> {
    let mut builder = Builder::default();
    let id = builder.symbol(name);
    let words: Vec<_> = words_of(name).iter().map(|word| builder.symbol(word)).collect();
    let bytes = if words.is_empty() {
        Vec::new()
    } else {
        vec![0; data.size as usize]
    };
    let section = match words.is_empty() {
        true => builder.section(".bss", Purpose::Zeros),
        false => builder.section(".data", Purpose::Data),
    };
    let references = (0..)
        .step_by(4)
        .zip(words)
        .map(|(offset, symbol)| Reference {
            offset,
            kind: Reloc::Abs32,
            symbol,
            addend: 0,
        })
        .collect();
    let contents = Contents {
        bytes: &bytes,
        size: data.size,
        align: data.align,
        references,
    };
    builder.define(id, SymbolKind::Object, section, contents)?;
    Some(Input {
        name: format!("runtime({name})"),
        object: builder.finish(),
    })
}

impl Library for RuntimeLibrary {
    fn member(&mut self, symbol: &str) -> Result<Option<Input>, String> {
        if let Some(found) = naplespu_runtime::data(symbol) {
            return Ok(data(symbol, found));
        }
        let Some(code) = self.code(symbol)? else {
            return Ok(None);
        };
        let mut builder = Builder::default();
        let id = builder.symbol(symbol);
        let own = Target::Runtime(symbol.to_owned());
        let mut reference = |reloc: &cranelift_naplespu::code::Reloc| {
            let target = Target::of_code(&reloc.target, &own, &FunctionParameters::new(), Names::Runtime);
            // All targets are in the runtime.
            let (Target::Name(name) | Target::Runtime(name)) = target else {
                return None;
            };
            Some(Reference {
                offset: reloc.offset,
                kind: reloc.kind,
                symbol: builder.symbol(&name),
                addend: reloc.addend,
            })
        };
        let references: Option<_> = code.relocs.iter().map(&mut reference).collect();
        let references = references.ok_or_else(|| format!("{symbol} of the runtime refers to a module"))?;
        let section = builder.section(".text", Purpose::Code);
        let contents = Contents {
            bytes: &code.bytes,
            size: code.bytes.len() as u32,
            align: DEFAULT_ALIGN,
            references,
        };
        let defined = builder.define(id, SymbolKind::Function, section, contents);
        let offset = defined.ok_or_else(|| format!("{symbol} of the runtime is too large"))?;
        if self.isa.flags().unwind_info() {
            let mut frames = Frames::default();
            frames.add(section, offset, code.pool_start, &code.unwind_rows_without_frame());
            let written = frames.write(&mut builder);
            written.map_err(|error| format!("{symbol} of the runtime: {error}"))?;
        }
        Ok(Some(Input {
            name: format!("runtime({symbol})"),
            object: builder.finish(),
        }))
    }
}
