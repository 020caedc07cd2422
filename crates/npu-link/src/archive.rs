//! Archives of object files, as `ar` makes them.

use crate::elf::{self, ElfError};
use crate::program::{Input, Library};
use npu_mc::asm::{Binding, SymbolValue};
use object::read::archive::ArchiveFile;
use std::collections::HashMap;

/// An archive: a library of objects.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    members: Vec<Option<Input>>,
    /// The first member that defines a symbol.
    symbols: HashMap<String, usize>,
}

impl Archive {
    /// Reads an archive. `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// The bytes are no archive, or a member is no object file of this machine.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, ElfError> {
        let file = ArchiveFile::parse(bytes)?;
        let mut archive = Self::default();
        for member in file.members() {
            let member = member?;
            let own = String::from_utf8_lossy(member.name()).into_owned();
            let (offset, _) = member.file_range();
            let contents = member.data(bytes)?;
            let object = elf::object(contents).map_err(|error| ElfError {
                offset: Some(offset + error.offset.unwrap_or(0)),
                message: format!("{own}: {}", error.message),
            })?;
            let number = archive.members.len();
            for symbol in &object.object.symbols {
                if symbol.binding != Binding::Local && symbol.value != SymbolValue::Undefined {
                    archive.symbols.entry(symbol.name.clone()).or_insert(number);
                }
            }
            archive.members.push(Some(Input {
                name: format!("{name}({own})"),
                object: object.object,
            }));
        }
        Ok(archive)
    }

    /// Whether the bytes begin as archives do.
    pub fn is_archive(bytes: &[u8]) -> bool {
        bytes.starts_with(&object::archive::MAGIC)
    }
}

impl Library for Archive {
    fn member(&mut self, symbol: &str) -> Result<Option<Input>, String> {
        let number = self.symbols.get(symbol);
        Ok(number.and_then(|&number| self.members.get_mut(number)?.take()))
    }
}
