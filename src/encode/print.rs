//! Compiled code as text: plain assembly, and a disassembly with offsets, bytes, relocations and
//! traps.

use crate::code::{CompiledCode, DebugTagPos, ExceptionHandler, RelocTarget};
use cranelift_codegen::ir::function::FunctionParameters;
use npu_mc::machine::{INSTRUCTION_SIZE, VECTOR_SLOT};
use std::fmt::Write;

impl CompiledCode {
    /// Returns assembly with a label before each basic block, for `precise-output` tests.
    pub fn asm(&self, params: Option<&FunctionParameters>) -> String {
        let mut text = String::new();
        self.lines(|offset, _, line| {
            if offset >= self.pool_start {
                return;
            }
            self.block_label(&mut text, offset);
            let _ = write!(text, "  {line}");
            self.notes(&mut text, offset, params);
            text.push('\n');
        });
        // Print one line per vector.
        let pool = self.bytes.get(self.pool_start as usize..).unwrap_or_default();
        for vector in pool.chunks_exact(VECTOR_SLOT as usize) {
            let (words, _) = vector.as_chunks();
            let words: Vec<String> = words
                .iter()
                .map(|&word| format!("{:#x}", u32::from_le_bytes(word)))
                .collect();
            let _ = writeln!(text, "  .long {}", words.join(", "));
        }
        text
    }

    /// Returns assembly with offsets, bytes, relocations and traps.
    pub fn disassemble(&self, params: Option<&FunctionParameters>) -> String {
        let mut text = String::new();
        self.lines(|offset, bytes, line| {
            self.block_label(&mut text, offset);
            let [a, b, c, d] = bytes;
            let _ = write!(text, "{offset:8x}: {a:02x} {b:02x} {c:02x} {d:02x}  {line}");
            self.notes(&mut text, offset, params);
            text.push('\n');
        });
        text
    }

    fn lines(&self, mut line: impl FnMut(u32, [u8; 4], String)) {
        let code = self.pool_start as usize;
        let is_pool = |offset: u32| offset as usize >= code;
        for (index, chunk) in self.bytes.chunks_exact(INSTRUCTION_SIZE as usize).enumerate() {
            let bytes = [chunk[0], chunk[1], chunk[2], chunk[3]];
            let offset = index as u32 * INSTRUCTION_SIZE;
            let word = u32::from_le_bytes(bytes);
            let text = match npu_mc::decode(word) {
                Ok(inst) if !is_pool(offset) => inst.to_string(),
                _ => format!(".long {word:#010x}"),
            };
            line(offset, bytes, text);
        }
    }

    fn block_label(&self, text: &mut String, offset: u32) {
        // Several blocks start at the same offset if some are empty.
        if let Ok(mut index) = self.block_starts.binary_search(&offset) {
            while index > 0 && self.block_starts[index - 1] == offset {
                index -= 1;
            }
            let _ = writeln!(text, "block{index}: ; offset {offset:#x}");
        }
    }

    fn notes(&self, text: &mut String, offset: u32, params: Option<&FunctionParameters>) {
        for reloc in self.relocs.iter().filter(|r| r.offset == offset) {
            let _ = write!(
                text,
                " ; reloc_external {} {}",
                reloc.kind.name(),
                reloc.target.describe(params)
            );
            if reloc.addend != 0 {
                let _ = write!(text, "{:+}", reloc.addend);
            }
        }
        let next = offset.saturating_add(INSTRUCTION_SIZE);
        for map in self.stack_maps.iter().filter(|m| m.return_offset == next) {
            let entries: Vec<String> = map
                .entries
                .iter()
                .map(|e| format!("{} at {}", e.ty, e.offset))
                .collect();
            let _ = write!(text, " ; stack_map: {}", entries.join(", "));
        }
        for tags in &self.debug_tags {
            let here = match tags.pos {
                DebugTagPos::Post => tags.offset == next,
                DebugTagPos::Pre => tags.offset == offset,
            };
            if here {
                let side = match tags.pos {
                    DebugTagPos::Post => "post",
                    DebugTagPos::Pre => "pre",
                };
                let list: Vec<String> = tags.tags.iter().map(ToString::to_string).collect();
                let _ = write!(text, " ; tags {side}: {}", list.join(", "));
            }
        }
        for site in self.call_sites.iter().filter(|site| site.return_offset == next) {
            for handler in &site.handlers {
                let _ = match handler {
                    ExceptionHandler::Tag(tag, offset) => write!(text, " ; {tag}: {offset:#x}"),
                    ExceptionHandler::Default(offset) => write!(text, " ; default: {offset:#x}"),
                    ExceptionHandler::Context(offset) => write!(text, " ; context: sp+{offset:#x}"),
                };
            }
        }
        for trap in self.traps.iter().filter(|t| t.offset == offset) {
            let _ = write!(text, " ; trap: {}", trap.code);
        }
    }
}

impl RelocTarget {
    /// Returns the name of the symbol in CLIF syntax. User names need the parameters of the
    /// function in which they occur.
    pub fn describe(&self, params: Option<&FunctionParameters>) -> String {
        match self {
            Self::Name(name) => name.display(params).to_string(),
            Self::Function | Self::Runtime(_) => self.to_string(),
        }
    }
}
