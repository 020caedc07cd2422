//! Translates Brook's syntax tree to CLIF, and runs the program.
//!
//! Every value is a word: a number, or the address of an array or a function. An array is a data
//! object with its length before its elements. The lines of the program are the source locations,
//! so that traps are reported by line.

use super::parser::{Definition, DefinitionKind, Element, Expr, ExprKind, Fault, Operator, Stmt, StmtKind};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, BlockArg, InstBuilder, MemFlagsData, Signature, SourceLoc, TrapCode, Value, types,
};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module};
use cranelift_naplespu::isa;
use naplespu_jit::{NpuModule, RunError};
use std::collections::HashMap;
use std::error::Error;

/// The type of all values.
const WORD: types::Type = types::I32;
const WORD_SIZE: i32 = 4;

/// An array index out of bounds.
const BAD_INDEX: TrapCode = TrapCode::unwrap_user(1);

/// The limit of instructions, against infinite loops.
const STEPS: u64 = 100_000_000;

/// Compiles a program, calls its `main`, and returns its output on the console.
pub fn run(definitions: &[Definition]) -> Result<String, Box<dyn Error>> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    let mut program = Program {
        module: NpuModule::new(isa)?,
        funcs: HashMap::new(),
        arrays: HashMap::new(),
    };
    program.declare(definitions)?;
    let mut builder_context = FunctionBuilderContext::new();
    for definition in definitions {
        match &definition.kind {
            DefinitionKind::Array(elements) => program.define_array(definition, elements)?,
            DefinitionKind::Func { params, body } => {
                program.define_func(definition, params, body, &mut builder_context)?
            }
        }
    }
    program.module.finalize_definitions()?;
    let Some(&(main, 0)) = program.funcs.get("main") else {
        return Err("there is no function `main` without parameters".into());
    };
    program.module.set_step_limit(STEPS);
    match program.module.call(main, &[]) {
        Ok(_) => Ok(String::from_utf8_lossy(program.module.machine().console_output()).into_owned()),
        Err(RunError::Trap(trap)) => {
            let what = match trap.code {
                Some(BAD_INDEX) => "an index outside of its array".to_owned(),
                Some(TrapCode::INTEGER_DIVISION_BY_ZERO) => "a division by zero".to_owned(),
                Some(code) => code.to_string(),
                None => "an unknown trap".to_owned(),
            };
            let function = trap.function.unwrap_or_default();
            let line = trap.srcloc.map_or(0, SourceLoc::bits);
            let what = format!("{what} in `{function}`");
            Err(Fault { line, what }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The declarations of the program.
struct Program {
    module: NpuModule,
    /// With the number of parameters.
    funcs: HashMap<String, (FuncId, usize)>,
    arrays: HashMap<String, DataId>,
}

impl Program {
    fn declare(&mut self, definitions: &[Definition]) -> Result<(), Box<dyn Error>> {
        for Definition { line, name, kind } in definitions {
            if self.funcs.contains_key(name) || self.arrays.contains_key(name) || name == "put" {
                let what = format!("`{name}` is there already");
                return Err(Fault { line: *line, what }.into());
            }
            match kind {
                DefinitionKind::Func { params, .. } => {
                    let signature = self.signature(params.len());
                    let id = self.module.declare_function(name, Linkage::Local, &signature)?;
                    self.funcs.insert(name.clone(), (id, params.len()));
                }
                DefinitionKind::Array(_) => {
                    let id = self.module.declare_data(name, Linkage::Local, true, false)?;
                    self.arrays.insert(name.clone(), id);
                }
            }
        }
        Ok(())
    }

    fn signature(&self, params: usize) -> Signature {
        let mut signature = self.module.make_signature();
        signature.params = vec![AbiParam::new(WORD); params];
        signature.returns = vec![AbiParam::new(WORD)];
        signature
    }

    fn define_array(&mut self, definition: &Definition, elements: &[Element]) -> Result<(), Box<dyn Error>> {
        let mut words = vec![i32::try_from(elements.len())?];
        let mut data = DataDescription::new();
        for (index, element) in (1..).zip(elements) {
            let offset = index * WORD_SIZE.cast_unsigned();
            words.push(0);
            match element {
                Element::Number(number) => words[index as usize] = *number,
                Element::Text(text) => {
                    let text = self.text(text)?;
                    let text = self.module.declare_data_in_data(text, &mut data);
                    data.write_data_addr(offset, text, 0);
                }
                Element::Name(name) => {
                    if let Some(&(func, _)) = self.funcs.get(name) {
                        let func = self.module.declare_func_in_data(func, &mut data);
                        data.write_function_addr(offset, func);
                    } else if let Some(&array) = self.arrays.get(name) {
                        let array = self.module.declare_data_in_data(array, &mut data);
                        data.write_data_addr(offset, array, 0);
                    } else {
                        return Err(unknown(definition.line, name).into());
                    }
                }
            }
        }
        data.define(bytes(&words));
        self.module.define_data(self.arrays[&definition.name], &data)?;
        Ok(())
    }

    /// Defines an array with the characters of a text.
    fn text(&mut self, text: &str) -> Result<DataId, Box<dyn Error>> {
        let mut words = vec![i32::try_from(text.len())?];
        words.extend(text.bytes().map(i32::from));
        let mut data = DataDescription::new();
        data.define(bytes(&words));
        let id = self.module.declare_anonymous_data(false, false)?;
        self.module.define_data(id, &data)?;
        Ok(id)
    }

    fn define_func(
        &mut self,
        definition: &Definition,
        params: &[String],
        body: &[Stmt],
        builder_context: &mut FunctionBuilderContext,
    ) -> Result<(), Box<dyn Error>> {
        let mut ctx = self.module.make_context();
        ctx.func.signature = self.signature(params.len());
        let config = self.module.target_config();
        let mut translator = Translator {
            b: FunctionBuilder::new(&mut ctx.func, builder_context),
            program: self,
            variables: HashMap::new(),
        };
        let entry = translator.b.create_block();
        translator.b.append_block_params_for_function_params(entry);
        translator.b.switch_to_block(entry);
        let values = translator.b.block_params(entry).to_vec();
        for (name, value) in params.iter().zip(values) {
            translator.set(name, value);
        }
        translator.block(body)?;
        let zero = translator.number(0);
        translator.b.ins().return_(&[zero]);
        translator.b.seal_all_blocks();
        translator.b.finalize(config);
        let (id, _) = self.funcs[&definition.name];
        self.module.define_function(id, &mut ctx)?;
        Ok(())
    }
}

fn bytes(words: &[i32]) -> Box<[u8]> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn unknown(line: u32, name: &str) -> Fault {
    let what = format!("`{name}` is not known");
    Fault { line, what }
}

/// A function during translation.
struct Translator<'a> {
    b: FunctionBuilder<'a>,
    program: &'a mut Program,
    variables: HashMap<String, Variable>,
}

impl Translator<'_> {
    fn number(&mut self, number: i32) -> Value {
        self.b.ins().iconst(WORD, i64::from(number))
    }

    /// Sets a variable, and declares it at its first assignment.
    fn set(&mut self, name: &str, value: Value) {
        let variable = match self.variables.get(name) {
            Some(&variable) => variable,
            None => {
                let variable = self.b.declare_var(WORD);
                self.variables.insert(name.to_owned(), variable);
                variable
            }
        };
        self.b.def_var(variable, value);
    }

    fn block(&mut self, body: &[Stmt]) -> Result<(), Box<dyn Error>> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Box<dyn Error>> {
        self.b.set_srcloc(SourceLoc::new(stmt.line));
        match &stmt.kind {
            StmtKind::Let(name, expr) => {
                let value = self.expr(expr)?;
                self.set(name, value);
            }
            StmtKind::Assign(place, expr) => match &place.kind {
                ExprKind::Name(name) if self.variables.contains_key(name) => {
                    let value = self.expr(expr)?;
                    self.set(name, value);
                }
                ExprKind::Index(array, index) => {
                    let address = self.element(array, index)?;
                    let value = self.expr(expr)?;
                    self.b.ins().store(MemFlagsData::trusted(), value, address, WORD_SIZE);
                }
                _ => {
                    let what = "this is neither a variable of the function nor an element of an array".to_owned();
                    return Err(Fault { line: place.line, what }.into());
                }
            },
            StmtKind::Expr(expr) => {
                self.expr(expr)?;
            }
            StmtKind::Return(expr) => {
                let value = self.expr(expr)?;
                self.b.ins().return_(&[value]);
                let unreachable = self.b.create_block();
                self.b.switch_to_block(unreachable);
            }
            StmtKind::Print(list) => {
                for expr in list {
                    let value = self.expr(expr)?;
                    let is_text = matches!(expr.kind, ExprKind::Text(_));
                    self.call_named(if is_text { "put_text" } else { "put_number" }, expr.line, &[value])?;
                }
                let newline = self.number(i32::from(b'\n'));
                self.put(newline);
            }
            StmtKind::While(condition, body) => {
                let [head, inside, after] = [(); 3].map(|()| self.b.create_block());
                self.b.ins().jump(head, &[]);
                self.b.switch_to_block(head);
                let condition = self.expr(condition)?;
                self.b.ins().brif(condition, inside, &[], after, &[]);
                self.b.switch_to_block(inside);
                self.block(body)?;
                self.b.ins().jump(head, &[]);
                self.b.switch_to_block(after);
            }
            StmtKind::If(condition, yes, no) => {
                let [then, other, after] = [(); 3].map(|()| self.b.create_block());
                let condition = self.expr(condition)?;
                self.b.ins().brif(condition, then, &[], other, &[]);
                for (block, body) in [(then, yes), (other, no)] {
                    self.b.switch_to_block(block);
                    self.block(body)?;
                    self.b.ins().jump(after, &[]);
                }
                self.b.switch_to_block(after);
            }
        }
        Ok(())
    }

    fn expr(&mut self, expr: &Expr) -> Result<Value, Box<dyn Error>> {
        Ok(match &expr.kind {
            ExprKind::Number(number) => self.number(*number),
            ExprKind::Text(text) => {
                let text = self.program.text(text)?;
                self.address_of_data(text)
            }
            ExprKind::Name(name) => self.name(name, expr.line)?,
            ExprKind::Not(inner) => {
                let value = self.expr(inner)?;
                let zero = self.number(0);
                self.compare(IntCC::Equal, value, zero)
            }
            ExprKind::Negate(inner) => {
                let value = self.expr(inner)?;
                self.b.ins().ineg(value)
            }
            ExprKind::Length(array) => {
                let array = self.expr(array)?;
                self.b.ins().load(WORD, MemFlagsData::trusted(), array, 0)
            }
            ExprKind::Binary(Operator::And, left, right) => self.shortcut(left, right, false)?,
            ExprKind::Binary(Operator::Or, left, right) => self.shortcut(left, right, true)?,
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                self.b.set_srcloc(SourceLoc::new(expr.line));
                self.binary(*operator, left, right)
            }
            ExprKind::Index(array, index) => {
                let address = self.element(array, index)?;
                self.b.ins().load(WORD, MemFlagsData::trusted(), address, WORD_SIZE)
            }
            ExprKind::Call(callee, args) => self.call(callee, args)?,
        })
    }

    fn name(&mut self, name: &str, line: u32) -> Result<Value, Fault> {
        if let Some(&variable) = self.variables.get(name) {
            Ok(self.b.use_var(variable))
        } else if let Some(&(func, _)) = self.program.funcs.get(name) {
            let func = self.program.module.declare_func_in_func(func, self.b.func);
            Ok(self.b.ins().func_addr(WORD, func))
        } else if let Some(&array) = self.program.arrays.get(name) {
            Ok(self.address_of_data(array))
        } else {
            Err(unknown(line, name))
        }
    }

    fn address_of_data(&mut self, data: DataId) -> Value {
        let global = self.program.module.declare_data_in_func(data, self.b.func);
        self.b.ins().symbol_value(WORD, global)
    }

    fn compare(&mut self, condition: IntCC, left: Value, right: Value) -> Value {
        let result = self.b.ins().icmp(condition, left, right);
        self.b.ins().uextend(WORD, result)
    }

    fn binary(&mut self, operator: Operator, left: Value, right: Value) -> Value {
        match operator {
            Operator::Or => self.b.ins().bor(left, right),
            Operator::And => self.b.ins().band(left, right),
            Operator::Equal => self.compare(IntCC::Equal, left, right),
            Operator::NotEqual => self.compare(IntCC::NotEqual, left, right),
            Operator::Less => self.compare(IntCC::SignedLessThan, left, right),
            Operator::LessOrEqual => self.compare(IntCC::SignedLessThanOrEqual, left, right),
            Operator::Greater => self.compare(IntCC::SignedGreaterThan, left, right),
            Operator::GreaterOrEqual => self.compare(IntCC::SignedGreaterThanOrEqual, left, right),
            Operator::Add => self.b.ins().iadd(left, right),
            Operator::Subtract => self.b.ins().isub(left, right),
            Operator::Multiply => self.b.ins().imul(left, right),
            Operator::Divide => self.b.ins().sdiv(left, right),
            Operator::Remainder => self.b.ins().srem(left, right),
        }
    }

    /// Evaluates the left operand, and the right one unless the left one decides.
    fn shortcut(&mut self, left: &Expr, right: &Expr, decides: bool) -> Result<Value, Box<dyn Error>> {
        let [more, done] = [(); 2].map(|()| self.b.create_block());
        self.b.append_block_param(done, WORD);
        let left = self.expr(left)?;
        let result = [BlockArg::from(left)];
        if decides {
            self.b.ins().brif(left, done, &result, more, &[]);
        } else {
            self.b.ins().brif(left, more, &[], done, &result);
        }
        self.b.switch_to_block(more);
        let right = self.expr(right)?;
        self.b.ins().jump(done, &[BlockArg::from(right)]);
        self.b.switch_to_block(done);
        Ok(self.b.block_params(done)[0])
    }

    /// Returns the address one word below an element, after a bounds check.
    fn element(&mut self, array: &Expr, index: &Expr) -> Result<Value, Box<dyn Error>> {
        let line = index.line;
        let (array, index) = (self.expr(array)?, self.expr(index)?);
        self.b.set_srcloc(SourceLoc::new(line));
        let length = self.b.ins().load(WORD, MemFlagsData::trusted(), array, 0);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, index, length);
        self.b.ins().trapz(inside, BAD_INDEX);
        let size = self.number(WORD_SIZE);
        let distance = self.b.ins().imul(index, size);
        Ok(self.b.ins().iadd(array, distance))
    }

    fn call(&mut self, callee: &Expr, args: &[Expr]) -> Result<Value, Box<dyn Error>> {
        let values: Vec<Value> = args.iter().map(|arg| self.expr(arg)).collect::<Result<_, _>>()?;
        self.b.set_srcloc(SourceLoc::new(callee.line));
        if let ExprKind::Name(name) = &callee.kind
            && !self.variables.contains_key(name)
        {
            return Ok(self.call_named(name, callee.line, &values)?);
        }
        let address = self.expr(callee)?;
        let signature = self.program.signature(values.len());
        let signature = self.b.import_signature(signature);
        let call = self.b.ins().call_indirect(signature, address, &values);
        Ok(self.b.inst_results(call)[0])
    }

    fn call_named(&mut self, name: &str, line: u32, args: &[Value]) -> Result<Value, Fault> {
        if let ("put", [character]) = (name, args) {
            self.put(*character);
            return Ok(*character);
        }
        let Some(&(func, params)) = self.program.funcs.get(name) else {
            return Err(unknown(line, name));
        };
        if params != args.len() {
            let what = format!("`{name}` takes {params} arguments, not {}", args.len());
            return Err(Fault { line, what });
        }
        let func = self.program.module.declare_func_in_func(func, self.b.func);
        let call = self.b.ins().call(func, args);
        Ok(self.b.inst_results(call)[0])
    }

    /// Writes a character to the console.
    fn put(&mut self, character: Value) {
        let console = npu_mc::machine::CONSOLE_DATA.cast_signed();
        let console = self.number(console);
        self.b.ins().store(MemFlagsData::trusted(), character, console, 0);
    }
}
