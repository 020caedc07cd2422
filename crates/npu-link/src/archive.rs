//! Archives of object files in the format of `ar`.

use crate::elf::{self, ElfError};
use crate::program::types::{Input, Library};
use npu_mc::asm::{Binding, SymbolValue};
use object::read::archive::ArchiveFile;
use std::collections::HashMap;

/// An archive: a library of objects.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    members: Vec<Option<Input>>,
    /// The first member that defines each symbol.
    symbols: HashMap<String, usize>,
}

/// A member of an archive.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The name.
    pub name: String,
    /// The offset of its bytes in the archive.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl Member<'_> {
    /// Converts an error of the member into one of the archive, with its offset in the archive.
    pub fn error(&self, error: ElfError) -> ElfError {
        ElfError {
            offset: Some(self.offset + error.offset.unwrap_or(0)),
            message: format!("{}: {}", self.name, error.message),
        }
    }
}

impl Archive {
    /// Reads an archive. Messages name it `name`.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no archive or a member is no object file of this machine.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, ElfError> {
        let mut archive = Self::default();
        for member in Self::list(bytes)? {
            let own = &member.name;
            let object = elf::object(member.bytes).map_err(|error| member.error(error))?;
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

    /// Returns the members of an archive without parsing them.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no archive.
    pub fn list(bytes: &[u8]) -> Result<Vec<Member<'_>>, ElfError> {
        let file = ArchiveFile::parse(bytes)?;
        let members = file.members().map(|member| {
            let member = member?;
            Ok(Member {
                name: String::from_utf8_lossy(member.name()).into_owned(),
                offset: member.file_range().0,
                bytes: member.data(bytes)?,
            })
        });
        members.collect()
    }

    /// Returns whether the bytes start with the magic number of archives.
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
