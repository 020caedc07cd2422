//! Fuzzing: generates programs from bytes and checks the properties of every program. This crate's
//! tests run a fixed number of cases; cargo-fuzz runs an unlimited number.

use std::fmt::Write;

use crate::{Options, Parsed, dump_json, parse_str, print_detailed_records, print_records};

/// Bytes as a sequence of decisions. After the last byte every decision is 0, which ends the
/// program.
struct Choices<'a> {
    bytes: &'a [u8],
    out: String,
    classes: usize,
    records: usize,
    /// Whether the fields of a class are in scope.
    inside: bool,
}

/// Generates a program by the grammar from a few fixed names, so that most of it is valid.
///
/// Every class has the fields `i`, `b`, `s`, `l`, `d` and `r`, one for each kind of type, and takes
/// an `int` and a `string`.
pub fn program(bytes: &[u8]) -> String {
    let mut choices = Choices {
        bytes,
        out: String::from("class Any; def op : Any;\n"),
        classes: 0,
        records: 0,
        inside: false,
    };
    choices.class();
    while !choices.bytes.is_empty() && choices.out.len() < 1 << 14 {
        choices.statement(3);
    }
    choices.out
}

/// Parses a program with low limits and calls every reporting function on it.
pub fn exercise(text: &str) -> Parsed {
    let options = Options {
        // Enough for every reasonable program; an infinite one exceeds it soon.
        step_limit: 3_000_000,
        trace: text.len().is_multiple_of(4),
        ..Options::default()
    };
    let parsed = parse_str("fuzz.td", text, &options);
    let _ = parsed.render_diagnostics();
    if !parsed.has_errors() {
        // A sink never fails.
        let mut out = std::io::sink();
        let _ = print_records(&parsed.records, &mut out);
        let _ = print_detailed_records(&parsed.records, &parsed.sources, &mut out);
        let _ = dump_json(&parsed.records, &parsed.sources, &mut out);
        for record in parsed.records.defs() {
            for field in record.fields() {
                let _ = record.history(field.name());
            }
        }
    }
    parsed
}

impl Choices<'_> {
    fn pick(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        usize::from(*first) % below.max(1)
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn put_all(&mut self, parts: &[&str], depth: usize) {
        for part in parts {
            match *part {
                "%i" => self.int(depth),
                "%s" => self.string(depth),
                "%b" => self.bits(depth),
                "%l" => self.list(depth),
                "%d" => self.dag(depth),
                "%r" => self.record(depth),
                text => self.put(text),
            }
        }
    }

    fn one_of(&mut self, leaves: &[&[&str]], trees: &[&[&str]], depth: usize) {
        if depth == 0 || self.pick(3) == 0 {
            let at = self.pick(leaves.len());
            return self.put_all(leaves[at], 0);
        }
        let at = self.pick(trees.len());
        self.put_all(trees[at], depth - 1);
    }

    fn int(&mut self, depth: usize) {
        let inside: &[&[&str]] = &[
            &["1"],
            &["n"],
            &["i"],
            &["-7"],
            &["0b11"],
            &["b{3-1}"],
            &["0x7fffffffffffffff"],
        ];
        let outside: &[&[&str]] = &[&["1"], &["2"], &["40"], &["-7"], &["0b11"], &["63"]];
        let trees: &[&[&str]] = &[
            &["!add(", "%i", ", ", "%i", ")"],
            &["!mul(", "%i", ", ", "%i", ")"],
            &["!sub(", "%i", ", ", "%i", ")"],
            &["!shl(", "%i", ", ", "%i", ")"],
            &["!xor(", "%i", ", ", "%i", ")"],
            &["!if(!eq(", "%i", ", ", "%i", "), ", "%i", ", ", "%i", ")"],
            &["!cond(!lt(", "%i", ", 3): ", "%i", ", 1: ", "%i", ")"],
            &["!size(", "%l", ")"],
            &["!size(", "%d", ")"],
            &["!foldl(", "%i", ", ", "%l", ", x, y, !add(x, y))"],
            &["!find(", "%s", ", ", "%s", ")"],
            &["!head(", "%l", " # [1])"],
            &["!or(", "%i", ", ", "%i", ")"],
            &["%r", ".i"],
            &["!getdagarg<int>(", "%d", ", 0)"],
            &["!exists<C0>(", "%s", ")"],
        ];
        self.one_of(if self.inside { inside } else { outside }, trees, depth);
    }

    fn string(&mut self, depth: usize) {
        let inside: &[&[&str]] = &[&["\"a\""], &["t"], &["s"], &["NAME"], &["[{ code }]"]];
        let outside: &[&[&str]] = &[&["\"a\""], &["\"bc\""], &["\"\""]];
        let trees: &[&[&str]] = &[
            &["%s", " # ", "%s"],
            &["!strconcat(", "%s", ", ", "%s", ")"],
            &["!cast<string>(", "%i", ")"],
            &["!toupper(", "%s", ")"],
            &["!substr(", "%s", ", 0, ", "%i", ")"],
            &["!interleave(", "%l", ", ", "%s", ")"],
            &["!repr(", "%l", ")"],
            &["!subst(", "%s", ", ", "%s", ", ", "%s", ")"],
        ];
        self.one_of(if self.inside { inside } else { outside }, trees, depth);
    }

    fn bits(&mut self, depth: usize) {
        let inside: &[&[&str]] = &[&["0b00110101"], &["?"], &["b"], &["{b{0-3}, 0b1010}"]];
        let outside: &[&[&str]] = &[&["0b00110101"], &["?"], &["7"]];
        let trees: &[&[&str]] = &[
            &["!and(", "%i", ", 255)"],
            &["{", "%r", ".b{7-4}, 1, 0, ?, 1}"],
            &["%r", ".b"],
        ];
        self.one_of(if self.inside { inside } else { outside }, trees, depth);
    }

    fn list(&mut self, depth: usize) {
        let inside: &[&[&str]] = &[&["[1, 2]"], &["[]<int>"], &["l"], &["[n, i]"]];
        let outside: &[&[&str]] = &[&["[1, 2]"], &["[]<int>"], &["[3]"]];
        let trees: &[&[&str]] = &[
            &["!listconcat(", "%l", ", ", "%l", ")"],
            &["%l", " # ", "%l"],
            &["!foreach(x, ", "%l", ", !add(x, ", "%i", "))"],
            &["!filter(x, ", "%l", ", !gt(x, ", "%i", "))"],
            &["!range(!and(", "%i", ", 7))"],
            &["!sort(x, ", "%l", ", x)"],
            &["!listsplat(", "%i", ", !and(", "%i", ", 7))"],
            &["[", "%i", ", ", "%i", "]"],
            &["!listremove(", "%l", ", ", "%l", ")"],
            &["%r", ".l"],
        ];
        self.one_of(if self.inside { inside } else { outside }, trees, depth);
    }

    fn dag(&mut self, depth: usize) {
        let inside: &[&[&str]] = &[&["(op)"], &["(op 1:$x)"], &["d"], &["(op n:$n, s)"]];
        let outside: &[&[&str]] = &[&["(op)"], &["(op 1:$x)"], &["(op $y)"]];
        let trees: &[&[&str]] = &[
            &["!con(", "%d", ", ", "%d", ")"],
            &["(op ", "%i", ":$a, ", "%d", ":$b)"],
            &["!setdagarg((op 1, 2), 0, ", "%s", ")"],
            &["!dag(op, ", "%l", ", ?)"],
            &["!foreach(x, ", "%d", ", x)"],
        ];
        self.one_of(if self.inside { inside } else { outside }, trees, depth);
    }

    fn record(&mut self, depth: usize) {
        // A class must not derive from itself: its value would be infinite.
        let class = self.pick(self.classes.max(1));
        let _ = write!(self.out, "C{class}<");
        self.put_all(&["%i", ", ", "%s", ">"], depth.min(1));
    }

    fn class(&mut self) {
        let number = self.classes;
        let _ = write!(self.out, "class C{number}<int n, string t>");
        self.inside = true;
        if number > 0 {
            let parent = self.pick(number);
            let _ = write!(self.out, " : C{parent}<");
            self.put_all(&["n, t>"], 1);
            self.put(" {\n");
            self.body(3);
        } else {
            self.put(" {\n  int i = n; bits<8> b = ?; string s = t; list<int> l = [n]; dag d = (op); Any r = op;\n");
        }
        self.put("}\n");
        self.inside = false;
        self.classes += 1;
    }

    fn body(&mut self, depth: usize) {
        for _ in 0..self.pick(5) {
            match self.pick(9) {
                0 => self.put_all(&["  let i = ", "%i", ";\n"], depth),
                1 => self.put_all(&["  let s = ", "%s", ";\n"], depth),
                2 => self.put_all(&["  let b = ", "%b", ";\n"], depth),
                3 => self.put_all(&["  let l = ", "%l", ";\n"], depth),
                4 => self.put_all(&["  let d = ", "%d", ";\n"], depth),
                5 => self.put_all(&["  let b{5, 2-1} = ", "%i", ";\n"], depth),
                6 => self.put_all(&["  let append l = ", "%l", ";\n"], depth),
                7 => self.put_all(&["  assert !ne(", "%i", ", 12345), ", "%s", ";\n"], depth),
                _ => self.put_all(&["  let r = ", "%r", ";\n"], depth),
            }
        }
    }

    fn statement(&mut self, depth: usize) {
        let number = self.records;
        self.records += 1;
        match self.pick(if depth == 0 { 3 } else { 8 }) {
            0 | 1 => {
                let class = self.pick(self.classes);
                let _ = write!(self.out, "def r{number} : C{class}<");
                self.put_all(&["%i", ", ", "%s", "> {\n"], depth);
                self.body(depth);
                self.put("}\n");
            }
            2 => self.put_all(&["dump ", "%s", ";\n"], depth),
            3 if depth == 3 && self.classes < 8 => self.class(),
            4 => {
                let _ = write!(self.out, "foreach v{number} = ");
                self.put_all(&["%l", " in {\n"], 1);
                let class = self.pick(self.classes);
                let _ = writeln!(self.out, "def f{number}_#v{number} : C{class}<v{number}, \"f\">;");
                self.put("}\n");
            }
            5 => {
                self.put_all(&["if !gt(", "%i", ", 3) then {\n"], 1);
                self.statement(depth - 1);
                self.put("} else {\n");
                self.statement(depth - 1);
                self.put("}\n");
            }
            6 => {
                self.put_all(&["let i = ", "%i", ", l = ", "%l", " in {\n"], 1);
                self.statement(depth - 1);
                self.put("}\n");
            }
            _ if depth == 3 => {
                let class = self.pick(self.classes);
                let _ = write!(
                    self.out,
                    "multiclass M{number}<int p> {{\n  def _a : C{class}<p, NAME>;\n  def _b : C{class}<"
                );
                self.put_all(&["%i", ", ", "%s", ">;\n"], 1);
                let _ = write!(self.out, "}}\ndefm m{number} : M{number}<");
                self.put_all(&["%i", ">;\n"], 1);
            }
            _ => self.put_all(&["defvar g", "%i", " = 1;\n"], 0),
        }
    }
}
