//! A cache of answers in a directory, by content hash.

use crate::answer::{Answer, Verdict};
use crate::prove::Options;
use cranelift_codegen::ir::Function;
use cranelift_naplespu::{CompiledCode, Isa};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory of answers.
#[derive(Clone, Debug)]
pub struct AnswerCache {
    folder: PathBuf,
}

impl AnswerCache {
    /// Opens the cache in a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Returns the file name of an answer: a hash of the prover, the settings, the function, and
    /// all parts of the code that the answer depends on.
    fn name(func: &Function, code: &CompiledCode, isa: &Isa, options: &Options) -> String {
        let mut hash = Sha256::new();
        let parts = [
            env!("NAPLESPU_PROVER").to_owned(),
            isa.code_settings(),
            func.display().to_string(),
            format!("{:?} {:?} {}", code.relocs, code.frame, code.pool_start),
            options.iterations.to_string(),
        ];
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(&code.bytes);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the answer, if it is cached.
    pub fn get(&self, func: &Function, code: &CompiledCode, isa: &Isa, options: &Options) -> Option<Answer> {
        let text = fs::read(self.folder.join(Self::name(func, code, isa, options))).ok()?;
        let value: Value = serde_json::from_slice(&text).ok()?;
        Answer::proved_from_json(func, &value)
    }

    /// Stores an answer if it is "proved". Other answers are computed again, because the user is
    /// changing the code.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn put(
        &self,
        func: &Function,
        code: &CompiledCode,
        isa: &Isa,
        options: &Options,
        answer: &Answer,
    ) -> io::Result<()> {
        if answer.verdict != Verdict::Proved {
            return Ok(());
        }
        let name = Self::name(func, code, isa, options);
        // Another process may write the same answer at the same time.
        let part = self.folder.join(format!("{name}.{}", std::process::id()));
        fs::write(&part, answer.to_json().to_string())?;
        fs::rename(part, self.folder.join(name))
    }
}
