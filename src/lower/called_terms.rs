//! The ISLE terms that algorithms in Rust invoke.

use super::context::{Lower, Rules};
use super::isle::generated;
use super::words::{Word, WordRules};
use crate::inst::reg::Reg;
use crate::inst::{AMode, Access};
use cranelift_codegen::ir::{ArgumentExtension, Value};

impl Rules for Lower<'_> {
    fn extended(&mut self, value: Value, extension: ArgumentExtension) -> Reg {
        match extension {
            ArgumentExtension::None => Reg::Virtual(self.put_in_regs(value).as_slice()[0]),
            ArgumentExtension::Uext => generated::constructor_zext32(self, value).0,
            ArgumentExtension::Sext => generated::constructor_sext32(self, value).0,
        }
    }

    fn load_bytes(&mut self, access: Access, addr: AMode, bytes: u8) -> Reg {
        let word = generated::constructor_load_bytes(self, &access, addr, bytes);
        self.reg(word)
    }

    fn store_bytes(&mut self, access: Access, src: Reg, addr: AMode, bytes: u8) {
        generated::constructor_store_bytes(self, &access, Word::Reg(src), addr, bytes);
    }
}

impl WordRules for Lower<'_> {
    fn word_and(&mut self, a: Word, b: Word) -> Word {
        generated::constructor_word_and(self, a, b)
    }

    fn word_add(&mut self, a: Word, b: Word) -> Word {
        generated::constructor_word_add(self, a, b)
    }

    fn word_srl(&mut self, a: Word, by: u32) -> Word {
        generated::constructor_word_srl(self, a, Word::Const(by))
    }

    fn word_whole_shl(&mut self, a: Word, by: Word) -> Word {
        generated::constructor_word_whole_shl(self, a, by)
    }

    fn word_whole_srl(&mut self, a: Word, by: Word) -> Word {
        generated::constructor_word_whole_srl(self, a, by)
    }
}
