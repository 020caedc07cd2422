//! Reads a binary module into lists. Everything is validated except function bodies, which are
//! validated during their translation.

use crate::config::Config;
use crate::error::{Result, WasmError};
use crate::types::{FuncType, Reference, TypeId, Types, ValueType, reference, unsupported, value_type};
use std::collections::HashMap;
use wasmparser::{
    CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, ExternalKind, FuncToValidate, FunctionBody,
    KnownCustom, MemoryType, Name, Operator, Parser, Payload, TableInit, TypeRef, ValidPayload, Validator,
    ValidatorResources, WasmFeatures,
};

/// An instruction of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConstOp {
    I32(i32),
    I64(i64),
    /// The bits.
    F32(u32),
    F64(u64),
    /// The bytes; the first is the lowest.
    V128(u128),
    Global(u32),
    Null,
    Func(u32),
    Add32,
    Sub32,
    Mul32,
    Add64,
    Sub64,
    Mul64,
}

/// An import, with its offset in the module.
#[derive(Debug)]
pub(crate) struct Import<'a> {
    pub module: &'a str,
    pub name: &'a str,
    pub kind: ImportKind,
    pub offset: u64,
}

/// The type that an import requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ImportKind {
    Func(TypeId),
    Table(Limits, Reference),
    /// The limits, and whether the memory is shared.
    Memory(Limits, bool),
    Global(ValueType, bool),
    Tag(TypeId),
}

/// The size limits of a memory, in pages, or of a table, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The initial size.
    pub min: u32,
    /// The maximum size, if declared.
    pub max: Option<u32>,
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub limits: Limits,
    pub shared: bool,
    pub offset: u64,
}

#[derive(Debug)]
pub(crate) struct Table {
    pub limits: Limits,
    pub element: Reference,
    pub init: Option<Vec<ConstOp>>,
    pub offset: u64,
}

#[derive(Debug)]
pub(crate) struct Global {
    pub ty: ValueType,
    pub mutable: bool,
    pub init: Vec<ConstOp>,
}

/// The destination of an active segment: the index of the memory or table, and the offset in it.
pub(crate) type Place = (u32, Vec<ConstOp>);

#[derive(Debug)]
pub(crate) struct Data<'a> {
    pub active: Option<Place>,
    pub bytes: &'a [u8],
    pub offset: u64,
}

#[derive(Debug)]
pub(crate) struct Elements {
    pub active: Option<Place>,
    /// Whether the segment only declares that functions are referenced.
    pub declared: bool,
    pub items: Vec<Vec<ConstOp>>,
    pub offset: u64,
}

/// The contents of a module.
#[derive(Default)]
pub(crate) struct ModuleInfo<'a> {
    /// The number of each type, by index.
    pub types: Vec<TypeId>,
    pub imports: Vec<Import<'a>>,
    /// The types of the functions that the module defines.
    pub functions: Vec<TypeId>,
    pub tables: Vec<Table>,
    pub memories: Vec<Memory>,
    pub globals: Vec<Global>,
    /// The types and numbers of the tags that the module defines.
    pub tags: Vec<(TypeId, u32)>,
    pub exports: Vec<(&'a str, ExternalKind, u32)>,
    pub start: Option<u32>,
    pub elements: Vec<Elements>,
    pub data: Vec<Data<'a>>,
    pub bodies: Vec<(FuncToValidate<ValidatorResources>, FunctionBody<'a>)>,
    /// The names of functions, by index.
    pub names: HashMap<u32, &'a str>,
    /// The index of the global with the name of the shadow stack pointer.
    pub stack_pointer: Option<u32>,
    /// Whether the module has an instruction that grows a memory or a table.
    pub grows_memory: bool,
    pub grows_table: bool,
    pub has_tail_calls: bool,
}

/// Returns the features that the validator accepts. Features without a translation are refused
/// later, by name.
pub(crate) fn features() -> WasmFeatures {
    WasmFeatures::default() | WasmFeatures::LEGACY_EXCEPTIONS
}

/// Reads a module.
pub(crate) fn parse<'a>(bytes: &'a [u8], types: &mut Types) -> Result<ModuleInfo<'a>> {
    let mut info = ModuleInfo::default();
    let mut validator = Validator::new_with_features(features());
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        if let ValidPayload::Func(func, body) = validator.payload(&payload)? {
            info.note_growth(&body)?;
            info.bodies.push((func, body));
        }
        info.add(payload, types)?;
    }
    Ok(info)
}

impl<'a> ModuleInfo<'a> {
    fn add(&mut self, payload: Payload<'a>, types: &mut Types) -> Result<()> {
        match payload {
            Payload::TypeSection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, group) = item?;
                    if group.is_explicit_rec_group() && group.types().len() > 1 {
                        return Err(unsupported("a group of recursive types", offset));
                    }
                    for ty in group.types() {
                        let CompositeInnerType::Func(func) = &ty.composite_type.inner else {
                            return Err(unsupported("a type of the garbage-collection proposal", offset));
                        };
                        if !ty.supertype_idxs.is_empty() || !ty.is_final {
                            return Err(unsupported("a type with subtypes", offset));
                        }
                        let list = |list: &[wasmparser::ValType]| {
                            let each = list.iter().map(|&ty| value_type(ty, &self.types, offset));
                            each.collect::<Result<Vec<_>>>()
                        };
                        let ty = FuncType {
                            params: list(func.params())?,
                            results: list(func.results())?,
                        };
                        self.types.push(types.intern(ty));
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports_with_offsets() {
                    let (offset, import) = import?;
                    let kind = self.import_kind(import.ty, offset)?;
                    self.imports.push(Import {
                        module: import.module,
                        name: import.name,
                        kind,
                        offset,
                    });
                }
            }
            Payload::FunctionSection(section) => {
                for index in section {
                    let ty = self.type_at(index?)?;
                    self.functions.push(ty);
                }
            }
            Payload::TableSection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, table) = item?;
                    let init = match table.init {
                        TableInit::RefNull => None,
                        TableInit::Expr(expr) => Some(const_expr(&expr)?),
                    };
                    self.tables.push(Table {
                        limits: table_limits(&table.ty, offset)?,
                        element: reference(table.ty.element_type, &self.types, offset)?,
                        init,
                        offset,
                    });
                }
            }
            Payload::MemorySection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, memory) = item?;
                    self.memories.push(Memory {
                        limits: memory_limits(&memory, offset)?,
                        shared: memory.shared,
                        offset,
                    });
                }
            }
            Payload::TagSection(section) => {
                for tag in section {
                    let ty = self.type_at(tag?.func_type_idx)?;
                    self.tags.push((ty, types.new_tag()));
                }
            }
            Payload::GlobalSection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, global) = item?;
                    self.globals.push(Global {
                        ty: value_type(global.ty.content_type, &self.types, offset)?,
                        mutable: global.ty.mutable,
                        init: const_expr(&global.init_expr)?,
                    });
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    self.exports.push((export.name, export.kind, export.index));
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, element) = item?;
                    self.elements.push(elements(element, offset)?);
                }
            }
            Payload::DataSection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, data) = item?;
                    let active = match data.kind {
                        DataKind::Passive => None,
                        DataKind::Active {
                            memory_index,
                            offset_expr,
                        } => Some((memory_index, const_expr(&offset_expr)?)),
                    };
                    self.data.push(Data {
                        active,
                        bytes: data.data,
                        offset,
                    });
                }
            }
            Payload::CustomSection(section) => {
                // Faults in custom sections do not make a module invalid.
                if let KnownCustom::Name(names) = section.as_known() {
                    for subsection in names.into_iter().flatten() {
                        match subsection {
                            Name::Function(map) => {
                                self.names
                                    .extend(map.into_iter().flatten().map(|naming| (naming.index, naming.name)));
                            }
                            Name::Global(map) => {
                                let mut names = map.into_iter().flatten();
                                let found = names.find(|naming| naming.name == "__stack_pointer");
                                self.stack_pointer = found.map(|naming| naming.index);
                            }
                            _ => {}
                        }
                    }
                }
            }
            Payload::Version {
                encoding: wasmparser::Encoding::Component,
                range,
                ..
            } => return Err(unsupported("a component", range.start)),
            _ => {}
        }
        Ok(())
    }

    fn import_kind(&self, ty: TypeRef, offset: u64) -> Result<ImportKind> {
        Ok(match ty {
            TypeRef::Func(index) => ImportKind::Func(self.type_at(index)?),
            TypeRef::Table(ty) => ImportKind::Table(
                table_limits(&ty, offset)?,
                reference(ty.element_type, &self.types, offset)?,
            ),
            TypeRef::Memory(ty) => ImportKind::Memory(memory_limits(&ty, offset)?, ty.shared),
            TypeRef::Global(ty) => ImportKind::Global(value_type(ty.content_type, &self.types, offset)?, ty.mutable),
            TypeRef::Tag(tag) => ImportKind::Tag(self.type_at(tag.func_type_idx)?),
            TypeRef::FuncExact(_) => return Err(unsupported("an exact function import", offset)),
        })
    }

    /// Returns the type with this index in the module.
    pub fn type_at(&self, index: u32) -> Result<TypeId> {
        let ty = self.types.get(index as usize).copied();
        ty.ok_or_else(|| WasmError::internal("a type that the validator accepts"))
    }

    /// Returns whether the module exports an item of this kind.
    pub fn exports_any(&self, kind: ExternalKind) -> bool {
        self.exports.iter().any(|&(_, found, _)| found == kind)
    }

    /// Returns whether the memories that the module defines have constant sizes.
    pub fn is_memory_fixed(&self, config: &Config) -> bool {
        !self.grows_memory && (config.closed || !self.exports_any(ExternalKind::Memory))
    }

    /// Records instructions that grow memories or tables. This extra pass pays off, since a memory
    /// without growth has a constant size.
    fn note_growth(&mut self, body: &FunctionBody<'a>) -> Result<()> {
        let mut reader = body.get_operators_reader()?;
        while !reader.eof() {
            match reader.read()? {
                Operator::MemoryGrow { .. } => self.grows_memory = true,
                Operator::TableGrow { .. } => self.grows_table = true,
                Operator::ReturnCall { .. } | Operator::ReturnCallIndirect { .. } | Operator::ReturnCallRef { .. } => {
                    self.has_tail_calls = true
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn elements(element: wasmparser::Element<'_>, offset: u64) -> Result<Elements> {
    let (active, declared) = match element.kind {
        ElementKind::Passive => (None, false),
        ElementKind::Declared => (None, true),
        ElementKind::Active {
            table_index,
            offset_expr,
        } => (Some((table_index.unwrap_or(0), const_expr(&offset_expr)?)), false),
    };
    let items = match element.items {
        ElementItems::Functions(list) => {
            let each = list.into_iter().map(|index| Ok(vec![ConstOp::Func(index?)]));
            each.collect::<Result<_>>()?
        }
        ElementItems::Expressions(_, list) => list.into_iter().map(|expr| const_expr(&expr?)).collect::<Result<_>>()?,
    };
    Ok(Elements {
        active,
        declared,
        items,
        offset,
    })
}

fn memory_limits(ty: &MemoryType, offset: u64) -> Result<Limits> {
    if ty.memory64 {
        return Err(unsupported("a memory with 64-bit addresses", offset));
    }
    if ty.page_size_log2.is_some() {
        return Err(unsupported("a page size", offset));
    }
    limits(ty.initial, ty.maximum, offset)
}

fn table_limits(ty: &wasmparser::TableType, offset: u64) -> Result<Limits> {
    if ty.table64 {
        return Err(unsupported("a table with 64-bit indices", offset));
    }
    if ty.shared {
        return Err(unsupported("a shared table", offset));
    }
    limits(ty.initial, ty.maximum, offset)
}

fn limits(min: u64, max: Option<u64>, offset: u64) -> Result<Limits> {
    let narrow = |limit: u64| {
        u32::try_from(limit).map_err(|_| WasmError::TooLarge {
            offset,
            what: format!("a limit of {limit}"),
        })
    };
    Ok(Limits {
        min: narrow(min)?,
        max: max.map(narrow).transpose()?,
    })
}

fn const_expr(expr: &ConstExpr<'_>) -> Result<Vec<ConstOp>> {
    let mut ops = Vec::new();
    let mut reader = expr.get_operators_reader();
    while !reader.eof() {
        let (op, offset) = reader.read_with_offset()?;
        ops.push(match op {
            Operator::I32Const { value } => ConstOp::I32(value),
            Operator::I64Const { value } => ConstOp::I64(value),
            Operator::F32Const { value } => ConstOp::F32(value.bits()),
            Operator::F64Const { value } => ConstOp::F64(value.bits()),
            Operator::V128Const { value } => ConstOp::V128(value.i128() as u128),
            Operator::GlobalGet { global_index } => ConstOp::Global(global_index),
            Operator::RefNull { .. } => ConstOp::Null,
            Operator::RefFunc { function_index } => ConstOp::Func(function_index),
            Operator::I32Add => ConstOp::Add32,
            Operator::I32Sub => ConstOp::Sub32,
            Operator::I32Mul => ConstOp::Mul32,
            Operator::I64Add => ConstOp::Add64,
            Operator::I64Sub => ConstOp::Sub64,
            Operator::I64Mul => ConstOp::Mul64,
            Operator::End => break,
            other => return Err(unsupported(&format!("{other:?} in a constant expression"), offset)),
        });
    }
    Ok(ops)
}
