//! Finds and executes `; run:`, `; print:` and `; trap:` lines and compares their results.

use super::expect::{directive, is_run_line};
use super::lanes;
use super::outcome::{Finding, LineOutcome, Verdict, add_failure, add_panic};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Signature, TrapCode};
use cranelift_reader::{Comparison, Invocation, RunCommand, parse_run_command};
use naplespu_reader::diagnostic::Diagnostic;
use naplespu_reader::panics::{Panic, PanicIn, caught};
use naplespu_reader::parse::{ClifFile, Comment, FunctionCase};
use std::ops::Range;

/// Why a call did not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The target refuses the function or one of its callees.
    Refused(String),
    /// A trap with a code.
    Trap {
        /// The code in CLIF syntax.
        code: String,
        /// The message for a failure if no trap was expected.
        message: String,
    },
    /// A limit, a fault of the compiler or the interpreter, or a trap without a code.
    Failed(String),
    /// The code of a component panicked.
    Panicked(PanicIn, Panic),
    /// A fault that was already reported.
    Told(String),
}

/// The command of a run line.
#[derive(Debug)]
enum Command {
    /// A `run` or `print` command of Cranelift.
    Returns(RunCommand),
    /// A call that must trap with this code.
    Traps(Invocation, String),
}

/// A run line with its function and its result so far.
#[derive(Debug)]
pub struct RunLine {
    /// The index of the function to call.
    pub function: usize,
    comment: Comment,
    command: Result<Command, CallError>,
    finding: Finding,
    printed: Vec<String>,
}

/// All run lines of a file, in order.
#[derive(Debug, Default)]
pub struct RunLines {
    list: Vec<RunLine>,
}

impl RunLines {
    /// Finds the run lines.
    ///
    /// A line calls the function that it names. A line without a name calls the function before it.
    /// With `in_place` each line calls the function before it, whatever name it contains, as
    /// Cranelift's own runner does.
    ///
    /// Lines that name a function that does not exist in the file are faults.
    pub fn collect(file: &ClifFile, in_place: bool, faults: &mut Vec<Diagnostic>) -> RunLines {
        let mut list = Vec::new();
        if !in_place {
            for comment in file.preamble.iter().filter(|c| is_run_line(&c.text)) {
                match named(file, &comment.text) {
                    Some(function) => list.push(RunLine::new(file, function, comment)),
                    None => faults.push(
                        Diagnostic::new(
                            "this run line names no function of the file",
                            comment.offset..comment.offset + comment.text.len(),
                            "",
                        )
                        .note("a run line before the first function must name a function below"),
                    ),
                }
            }
        }
        for (index, case) in file.functions.iter().enumerate() {
            for comment in case.comments.iter().filter(|c| is_run_line(&c.text)) {
                let by_name = named(file, &comment.text).filter(|_| !in_place);
                if by_name.is_none() && !in_place && names_something(&comment.text) {
                    faults.push(
                        Diagnostic::new(
                            "this run line names no function of the file",
                            comment.offset..comment.offset + comment.text.len(),
                            "",
                        )
                        .note("a run line calls the function that it names, at any position in the file"),
                    );
                    continue;
                }
                list.push(RunLine::new(file, by_name.unwrap_or(index), comment));
            }
        }
        if !in_place {
            let comments = file.functions.iter().flat_map(|case| &case.comments);
            let all = file.preamble.iter().chain(comments);
            faults.extend(all.filter_map(without_colon));
        }
        RunLines { list }
    }

    /// Returns the lines.
    pub fn list(&self) -> &[RunLine] {
        &self.list
    }

    /// Returns whether a function has a run line.
    pub fn cover(&self, function: usize) -> bool {
        self.list.iter().any(|l| l.function == function)
    }

    /// Executes all lines with `call` and records results for the lines and their functions, and
    /// failures for display. `setting` names the configuration in failures.
    pub fn execute(
        &mut self,
        file: &ClifFile,
        setting: &str,
        functions: &mut [Finding],
        failures: &mut Vec<Diagnostic>,
        mut call: impl FnMut(&FunctionCase, &[DataValue]) -> Result<Vec<DataValue>, CallError>,
    ) {
        for line in &mut self.list {
            let case = &file.functions[line.function];
            let result = line.check(case, &mut call);
            let (verdict, reason) = match result {
                Ok(printed) => {
                    if let Some(text) = printed
                        && !line.printed.contains(&text)
                    {
                        line.printed.push(text);
                    }
                    (Verdict::Passed, String::new())
                }
                Err(CallError::Refused(reason)) => (Verdict::Refused, reason),
                Err(CallError::Told(reason)) => (Verdict::Failed, reason),
                Err(CallError::Failed(reason) | CallError::Trap { message: reason, .. }) => {
                    let span = directive_span(&line.comment);
                    add_failure(failures, "a run line failed", span, &reason, setting);
                    (Verdict::Failed, reason)
                }
                Err(CallError::Panicked(code, panic)) => {
                    let span = directive_span(&line.comment);
                    add_panic(failures, "a run line panicked", span, (code, &panic), setting);
                    (Verdict::Failed, format!("panic: {panic}"))
                }
            };
            let line_number = file.source.position(line.comment.offset).0;
            functions[line.function].add(
                verdict,
                if verdict == Verdict::Failed {
                    format!("line {line_number}: {reason}")
                } else {
                    reason.clone()
                },
            );
            line.finding.add(verdict, reason);
        }
    }

    /// Reports lines whose outcome contradicts the header: refused or not executed without an
    /// announcement.
    pub fn hold_to_header(&mut self, file: &ClifFile, functions: &mut [Finding], failures: &mut Vec<Diagnostic>) {
        let announced = &file.header.announced;
        for line in &mut self.list {
            let name = &file.functions[line.function].name;
            let span = directive_span(&line.comment);
            let failure = match line.finding.verdict() {
                Some(Verdict::Refused) if !announced.refuses(name) => {
                    Diagnostic::new("a run line is refused", span, line.finding.reason.clone())
                        .note(format!("to expect this, add `expect refused {name}` to the header"))
                }
                None if !announced.skipped => Diagnostic::new("a run line is not executed", span, "")
                    .note("the file has no `test run` and no `test interpret`")
                    .note("to expect this, add `expect skipped` to the header"),
                _ => continue,
            };
            line.finding.add(Verdict::Failed, failure.message.clone());
            let place = file.source.position(line.comment.offset).0;
            functions[line.function].add(Verdict::Failed, format!("line {place}: {}", failure.message));
            failures.push(failure);
        }
    }

    /// Returns the results of all lines. Lines that were never executed are skipped.
    pub fn outcomes(self, file: &ClifFile) -> Vec<LineOutcome> {
        self.list
            .into_iter()
            .map(|line| LineOutcome {
                line: file.source.position(line.comment.offset).0,
                text: directive(&line.comment.text).to_owned(),
                verdict: line.finding.verdict().unwrap_or(Verdict::Skipped),
                reason: line.finding.reason,
                printed: line.printed,
            })
            .collect()
    }
}

impl RunLine {
    /// Returns the byte offset of the comment in the file.
    pub fn offset(&self) -> usize {
        self.comment.offset
    }

    /// Returns the arguments of the call, or none if the line does not parse.
    pub fn arguments(&self) -> &[DataValue] {
        match &self.command {
            Ok(
                Command::Returns(RunCommand::Print(invocation) | RunCommand::Run(invocation, ..))
                | Command::Traps(invocation, _),
            ) => &invocation.args,
            Err(_) => &[],
        }
    }

    /// Returns whether the line expects a trap.
    pub fn traps(&self) -> bool {
        matches!(self.command, Ok(Command::Traps(..)))
    }

    /// Executes the call with `call` and compares the result with the expectation. Returns the text
    /// of a `print:` line.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub fn check(
        &self,
        case: &FunctionCase,
        call: impl FnOnce(&FunctionCase, &[DataValue]) -> Result<Vec<DataValue>, CallError>,
    ) -> Result<Option<String>, CallError> {
        let command = self.command.as_ref().map_err(Clone::clone)?;
        let result = call(case, self.arguments());
        let bare = !directive(&self.comment.text).contains(':');
        match command {
            Command::Returns(command) => result.and_then(|actual| judge(command, bare, &actual, &case.func.signature)),
            Command::Traps(_, code) => judge_trap(code, result, &case.func.signature),
        }
    }

    fn new(file: &ClifFile, function: usize, comment: &Comment) -> RunLine {
        let signature = &file.functions[function].func.signature;
        let command = match directive(&comment.text).strip_prefix("trap") {
            Some(rest) => parse_trap(rest, signature),
            None => parse_command(directive(&comment.text), signature).map(Command::Returns),
        };
        RunLine {
            function,
            comment: comment.clone(),
            command,
            finding: Finding::default(),
            printed: Vec::new(),
        }
    }
}

/// Reports a comment that lacks the colon of a run line and would never be executed.
fn without_colon(comment: &Comment) -> Option<Diagnostic> {
    let text = directive(&comment.text);
    let word = ["run", "print", "trap"].into_iter().find(|word| {
        text.strip_prefix(word)
            .is_some_and(|rest| rest.trim_start().starts_with('%'))
    })?;
    text.contains('(').then(|| {
        Diagnostic::new(
            "a run line without a colon",
            directive_span(comment),
            "this is never executed",
        )
        .note(format!("`; {word}: %f(1)` is a run line; any other form is a comment"))
    })
}

/// Parses a `run` or `print` line.
fn parse_command(text: &str, signature: &Signature) -> Result<RunCommand, CallError> {
    if let Some((given, taken)) = arguments(text).map(|given| (given, signature.params.len()))
        && given != taken
    {
        let ending = if taken == 1 { "" } else { "s" };
        return Err(CallError::Failed(format!(
            "the function takes {taken} argument{ending}, the run line gives {given}"
        )));
    }
    if lanes::has_wide(signature) {
        let text = lanes::text(text, signature);
        let text = text.map_err(|reason| CallError::Failed(format!("the run line does not parse: {reason}")))?;
        return parse_narrow(&text, &lanes::signature(signature));
    }
    parse_narrow(text, signature)
}

/// Parses a line whose values Cranelift can represent.
fn parse_narrow(text: &str, signature: &Signature) -> Result<RunCommand, CallError> {
    match caught(|| parse_run_command(text, signature)) {
        Ok(Ok(Some(command))) => match after_command(text, &command) {
            "" => Ok(command),
            // The reader stops after a complete command. Text after it would not be checked, so it
            // is an error.
            rest => Err(CallError::Failed(format!(
                "the run line does not parse: unexpected `{rest}` after the end"
            ))),
        },
        Ok(Ok(None)) => Err(CallError::Failed("this is not a run line".to_owned())),
        Ok(Err(error)) if error.message.starts_with("vectors larger than") => {
            Err(CallError::Refused(format!("cranelift-reader: {}", error.message)))
        }
        // The reader's message for a list whose length does not match the signature.
        Ok(Err(error)) if error.message.starts_with("expected invocation parentheses") && text.contains('(') => {
            Err(CallError::Failed(format!(
                "the run line does not parse: a call of {} arguments in parentheses is expected",
                signature.params.len()
            )))
        }
        Ok(Err(error)) => Err(CallError::Failed(format!(
            "the run line does not parse: {}",
            error.message
        ))),
        Err(panic) => Err(CallError::Panicked(PanicIn::Reader, panic)),
    }
}

/// Returns the number of arguments of the call in a line. Returns `None` if the line has no call or
/// the list is not closed.
fn arguments(text: &str) -> Option<usize> {
    let (before, list) = text.split_once('(')?;
    // The call precedes the comparison.
    if before.contains('=') {
        return None;
    }
    let (mut depth, mut count, mut any) = (0u32, 1, false);
    for c in list.chars() {
        match c {
            ')' if depth == 0 => return Some(if any { count } else { 0 }),
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => count += 1,
            _ => {}
        }
        any |= !c.is_whitespace();
    }
    None
}

/// Returns the text after the parsed command.
fn after_command<'a>(text: &'a str, command: &RunCommand) -> &'a str {
    let rest = match command {
        RunCommand::Print(_) => text.find('(').map(|start| after_brackets(&text[start..])),
        RunCommand::Run(..) => {
            let compared = ["==", "!="].iter().filter_map(|sign| text.find(sign)).min();
            compared.map(|sign| {
                let expected = text[sign + 2..].trim_start();
                if expected.starts_with('[') {
                    after_brackets(expected)
                } else {
                    let end = expected.find(|c: char| c.is_whitespace() || c == ',' || c == ']');
                    &expected[end.unwrap_or(expected.len())..]
                }
            })
        }
    };
    rest.unwrap_or_default().trim()
}

/// Returns the text after the bracket that closes the first one.
fn after_brackets(text: &str) -> &str {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &text[at + c.len_utf8()..];
        }
    }
    ""
}

/// Parses a `trap` line; `rest` begins with its colon. Cranelift does not have such lines, so the
/// call is parsed as one to print.
fn parse_trap(rest: &str, signature: &Signature) -> Result<Command, CallError> {
    let Some((call, code)) = rest.rsplit_once("==") else {
        return Err(CallError::Failed(
            "a trap line is of the form `trap: %f(1) == int_ovf`".to_owned(),
        ));
    };
    let code = code.trim();
    if code.parse::<TrapCode>().is_err() {
        return Err(CallError::Failed(format!("`{code}` is not a trap code")));
    }
    match parse_command(&format!("print{call}"), signature)? {
        RunCommand::Print(invocation) | RunCommand::Run(invocation, ..) => {
            Ok(Command::Traps(invocation, code.to_owned()))
        }
    }
}

/// Returns the byte range of a comment's directive in the file.
fn directive_span(comment: &Comment) -> Range<usize> {
    let text = comment.text.trim_start_matches([';', ' ', '\t']);
    let start = comment.offset + comment.text.len() - text.len();
    start..start + directive(&comment.text).len()
}

/// Returns the function that a run line names.
fn named(file: &ClifFile, comment: &str) -> Option<usize> {
    let (_, call) = directive(comment).split_once(':')?;
    let name = call
        .split(|c: char| c == '(' || c.is_whitespace())
        .find(|word| !word.is_empty())?;
    file.functions.iter().position(|f| f.name == name)
}

/// Returns whether a run line names a function; `; run` alone does not.
fn names_something(comment: &str) -> bool {
    directive(comment)
        .split_once(':')
        .is_some_and(|(_, call)| call.trim_start().starts_with('%'))
}

/// Formats results as in run lines.
fn list(actual: &[DataValue], signature: &Signature) -> String {
    match lanes::display(actual, &signature.returns).as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Compares results with the expectation of the command. For a `print:` command, returns the text
/// to print.
fn judge(
    command: &RunCommand,
    bare: bool,
    actual: &[DataValue],
    signature: &Signature,
) -> Result<Option<String>, CallError> {
    match command {
        RunCommand::Print(invocation) => Ok(Some(format!(
            "%{}({}) -> {}",
            invocation.func,
            lanes::display(&invocation.args, &signature.params).join(", "),
            list(actual, signature)
        ))),
        RunCommand::Run(_, comparison, expected) => {
            let equal = actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, b)| a.bitwise_eq(b));
            let good = match comparison {
                Comparison::Equals => equal,
                // For a line without a call the reader invents an expectation of one type.
                Comparison::NotEquals if bare => is_true(actual),
                Comparison::NotEquals => !equal,
            };
            if good {
                Ok(None)
            } else {
                Err(CallError::Failed(format!("got {}", list(actual, signature))))
            }
        }
    }
}

/// Compares the outcome of a call with an expected trap.
fn judge_trap(
    expected: &str,
    result: Result<Vec<DataValue>, CallError>,
    signature: &Signature,
) -> Result<Option<String>, CallError> {
    match result {
        Ok(values) => Err(CallError::Failed(format!("no trap, got {}", list(&values, signature)))),
        Err(CallError::Trap { code, .. }) if code == expected => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns whether the only result is not zero, for any type; this is the expectation of `; run`
/// alone.
fn is_true(actual: &[DataValue]) -> bool {
    let mut bytes = [0; 16];
    match actual {
        [value] if value.ty().bytes() <= 16 => {
            value.write_to_slice_le(&mut bytes);
            bytes.iter().any(|&b| b != 0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature_of(function: &str) -> Signature {
        cranelift_reader::parse_functions(function).unwrap()[0]
            .signature
            .clone()
    }

    #[test]
    fn arguments_are_counted() {
        let signature = signature_of("function %f(i32, i32x4) -> i32 { block0(v0: i32, v1: i32x4): return v0 }");
        let error = |text: &str| match parse_command(text, &signature) {
            Err(CallError::Failed(reason)) => reason,
            other => panic!("{text}: {other:?}"),
        };
        assert!(parse_command("run: %f(1, [1 2 3 4]) == 1", &signature).is_ok());
        for (text, given) in [
            ("run: %f(1) == 1", 1),
            ("print: %f()", 0),
            ("run: %f( ) == 1", 0),
            ("run: %f(1, [1, 2 3 4], 3) == 1", 3),
        ] {
            let wanted = format!("the function takes 2 arguments, the run line gives {given}");
            assert_eq!(error(text), wanted, "{text}");
        }
        assert!(error("run: %f(1, == 1").contains("does not parse"));
        let wide = signature_of("function %f(i32x16) -> i32 { block0(v0: i32x16): v1 = iconst.i32 0 return v1 }");
        let reason = parse_command("run: %f() == 0", &wide);
        assert!(matches!(reason, Err(CallError::Failed(text)) if text.contains("takes 1 argument, ")));
    }

    #[test]
    fn run_lines_without_a_colon_are_faults() {
        let function = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n";
        let faults = |comment: &str| {
            let file = ClifFile::parse("f.clif", format!("{function}; {comment}\n").as_bytes());
            let mut faults = Vec::new();
            RunLines::collect(&file, false, &mut faults);
            faults.len()
        };
        for bad in ["run %f(1) == 1", "print %f(1)", "trap  %f(1) == user1"] {
            assert_eq!(faults(bad), 1, "{bad}");
        }
        for good in [
            "run: %f(1) == 1",
            "run it as often as %f(1) asks",
            "running %f(1)",
            "run %f twice",
        ] {
            assert_eq!(faults(good), 0, "{good}");
        }
    }

    #[test]
    fn a_comment_may_stand_behind_a_run_line() {
        let function = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    trapz v0, user1\n    return v0\n}\n";
        let lines = "; run: %f(1) == 1 ; note %f(1) == 2\n; run: %f(1) == 2 ; == 1\n; trap: %f(0) == user1 ; user2\n\
                     ; print: %f(3) ;; == 4\n";
        let file = ClifFile::parse("f.clif", format!("{function}{lines}").as_bytes());
        let mut faults = Vec::new();
        let mut lines = RunLines::collect(&file, false, &mut faults);
        assert_eq!(faults, []);
        let (mut functions, mut failures) = (vec![Finding::default()], Vec::new());
        lines.execute(&file, "", &mut functions, &mut failures, |_, args| match args {
            [DataValue::I32(0)] => Err(CallError::Trap {
                code: "user1".to_owned(),
                message: String::new(),
            }),
            _ => Ok(args.to_vec()),
        });
        let outcomes = lines.outcomes(&file);
        let verdicts: Vec<_> = outcomes.iter().map(|line| line.verdict).collect();
        use Verdict::{Failed, Passed};
        assert_eq!(verdicts, [Passed, Failed, Passed, Passed]);
        assert_eq!(outcomes[0].text, "run: %f(1) == 1");
        let span = failures[0].span.clone().unwrap();
        assert_eq!(&file.source.text[span], "run: %f(1) == 2");
    }

    #[test]
    fn vectors_are_shown_by_their_lanes() {
        let signature = signature_of(
            "function %f() -> i32x4, i64, f32x2, i16x16 {\nblock0:\n    v0 = iconst.i64 0\n    trap user1\n}",
        );
        let bytes: Vec<u8> = [1i32, -2, 3, 4].into_iter().flat_map(i32::to_le_bytes).collect();
        let mut values = vec![DataValue::V128(bytes.try_into().unwrap()), DataValue::I64(5)];
        let floats: Vec<u8> = [1.5f32, -2.0].into_iter().flat_map(f32::to_le_bytes).collect();
        values.push(DataValue::V64(floats.try_into().unwrap()));
        values.extend((0..16).map(DataValue::I16));
        let shown = "[[1 -2 3 4], 5, [0x1.800000p0 -0x1.000000p1], [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]]";
        assert_eq!(list(&values, &signature), shown);
        assert_eq!(
            list(
                &values[1..2],
                &signature_of("function %f() -> i64 { block0: trap user1 }")
            ),
            "5"
        );
    }

    #[test]
    fn a_line_that_says_more_than_is_checked_does_not_parse() {
        let functions = "function %f(i32) -> i32 { block0(v0: i32): return v0 }";
        let functions = cranelift_reader::parse_functions(functions).unwrap();
        let signature = &functions[0].signature;
        for good in ["run: %f(4) == 4", "run: %f(4) != 5 ", "print: %f(4)"] {
            assert!(parse_command(good, signature).is_ok(), "{good}");
        }
        for bad in [
            "run: %f(4) == 4 garbage",
            "run: %f(4) == 4, 5",
            "run: %f(4) == 4 == 5",
            "run: %f(4) == 4]",
            "run: %f(4) == [4] [5]",
            "print: %f(4) == 5",
        ] {
            assert!(parse_command(bad, signature).is_err(), "{bad}");
        }
    }
}
