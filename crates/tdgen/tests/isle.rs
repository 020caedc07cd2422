//! The ISLE back end: what it makes of the real description compiles, and faults in patterns are told with their place.

use std::path::PathBuf;
use std::sync::Arc;

use cranelift_isle::{codegen, compile, files, lexer, parser};
use tablegen::{Options, Parsed};

fn td() -> PathBuf {
    npu_td::directory().to_owned()
}

fn options() -> Options {
    Options {
        include_dirs: vec![td()],
        ..Options::default()
    }
}

/// The description of the machine, with more text behind it.
fn machine_and(text: &str) -> Parsed {
    let parsed = tablegen::parse_str("test.td", &format!("include \"NaplesPU.td\"\n{text}\n"), &options());
    let messages: Vec<_> = parsed.diagnostics.iter().map(|d| &d.message).collect();
    assert!(!parsed.has_errors(), "{messages:?}");
    parsed
}

fn generated(text: &str) -> String {
    let parsed = machine_and(text);
    tdgen::emit_isle(&parsed).unwrap_or_else(|faults| panic!("{}", tdgen::build::render_all(&faults, &parsed.sources)))
}

/// CLIF instructions the patterns use: name, values, what stands between type and values.
const CLIF: &[(&str, usize, &str)] = &[
    ("iadd", 2, ""),
    ("fadd", 2, ""),
    ("fsub", 2, ""),
    ("fmul", 2, ""),
    ("fdiv", 2, ""),
    ("isub", 2, ""),
    ("imul", 2, ""),
    ("smulhi", 2, ""),
    ("umulhi", 2, ""),
    ("band", 2, ""),
    ("bor", 2, ""),
    ("bxor", 2, ""),
    ("bnot", 1, ""),
    ("ishl", 2, ""),
    ("ushr", 2, ""),
    ("sshr", 2, ""),
    ("clz", 1, ""),
    ("ctz", 1, ""),
    ("sextend", 1, ""),
    ("icmp", 2, "IntCC"),
];
const LOADS: &[&str] = &["load", "sload8", "uload8", "sload16", "uload16"];
const STORES: &[&str] = &["store", "istore8", "istore16"];

/// The terms that the compiler's prelude has, and a CLIF of only what patterns use. Instructions are variants of an
/// enum as in the real one, so that the check for overlapping rules sees that they exclude each other.
fn prelude() -> String {
    let mut variants = String::new();
    let mut terms = String::new();
    for (name, values, extra) in CLIF {
        let mut fields: Vec<String> = (0..*values).map(|i| format!("(x{i} Value)")).collect();
        let mut names: Vec<String> = (0..*values).map(|i| format!("x{i}")).collect();
        let mut types = vec!["Value"; *values];
        if !extra.is_empty() {
            fields.insert(0, format!("(cc {extra})"));
            names.insert(0, "cc".to_owned());
            types.insert(0, extra);
        }
        variants += &format!("  (C_{name} {})\n", fields.join(" "));
        let names = names.join(" ");
        terms += &format!("(decl {name} (Type {}) Inst)\n", types.join(" "));
        terms += &format!("(extractor ({name} ty {names}) (inst_data ty (Data.C_{name} {names})))\n");
    }
    for name in LOADS {
        variants += &format!("  (C_{name} (flags MemFlags) (p Value) (offset Offset32))\n");
        terms += &format!("(decl {name} (Type MemFlags Value Offset32) Inst)\n");
        terms += &format!("(extractor ({name} ty f p o) (inst_data ty (Data.C_{name} f p o)))\n");
    }
    for name in STORES {
        variants += &format!("  (C_{name} (flags MemFlags) (x Value) (p Value) (offset Offset32))\n");
        terms += &format!("(decl {name} (MemFlags Value Value Offset32) Inst)\n");
        terms += &format!("(extractor ({name} f x p o) (inst_data _ (Data.C_{name} f x p o)))\n");
    }
    let mut text = String::new();
    for ty in [
        "Unit",
        "Type",
        "Value",
        "Inst",
        "MemFlags",
        "Offset32",
        "Gpr",
        "Vec",
        "InstOutput",
        "AMode",
        "Simm9",
        "Imm16",
    ] {
        text += &format!("(type {ty} (primitive {ty}))\n");
    }
    for constant in ["I8", "I16", "I32", "F32"] {
        text += &format!("(extern const ${constant} Type)\n");
    }
    text += "(type IntCC extern (enum Equal NotEqual SignedGreaterThan SignedGreaterThanOrEqual SignedLessThan
  SignedLessThanOrEqual UnsignedGreaterThan UnsignedGreaterThanOrEqual UnsignedLessThan UnsignedLessThanOrEqual))\n";
    text += &format!("(type Data extern (enum\n{variants}))\n");
    text += "(decl inst_data (Type Data) Inst)
(extern extractor infallible inst_data inst_data)
(decl def_inst (Inst) Value)
(extern extractor def_inst def_inst)
(convert Inst Value def_inst)
(decl value_type (Type) Value)
(extern extractor infallible value_type value_type)
(decl int_fits_in_32 (Type) Type)
(extern extractor int_fits_in_32 int_fits_in_32)
(decl const_i32 (i32) Value)
(extern extractor const_i32 const_i32)
(decl pure simm9_const (i32) Simm9)
(extern constructor simm9_const simm9_const)
(decl pure partial aligned_address (MemFlags Value Offset32 u8) AMode)
(extern constructor aligned_address aligned_address)
(decl pure partial hardware_float () Unit)
(extern constructor hardware_float hardware_float)
(decl pure partial shifts_are_modulo () Unit)
(extern constructor shifts_are_modulo shifts_are_modulo)
(decl partial lower (Inst) InstOutput)\n";
    for leaf in ["simm9", "simm9_neg", "uimm5"] {
        text += &format!("(decl {leaf} (Simm9) Value)\n(extern extractor {leaf} {leaf})\n");
    }
    for (from, to) in [
        ("Value", "Gpr"),
        ("Value", "Vec"),
        ("Gpr", "InstOutput"),
        ("Vec", "InstOutput"),
        ("Unit", "InstOutput"),
    ] {
        let name = format!("{}_to_{}", from.to_lowercase(), to.to_lowercase());
        text +=
            &format!("(decl {name} ({from}) {to})\n(extern constructor {name} {name})\n(convert {from} {to} {name})\n");
    }
    text + &terms
}

/// Compiles ISLE; the messages of what is wrong.
fn compile_isle(text: &str) -> Result<String, Vec<String>> {
    let sources = [("prelude".to_owned(), prelude()), ("td".to_owned(), text.to_owned())];
    let files = Arc::new(files::Files::from_names_and_contents(sources.clone()));
    let mut defs = Vec::new();
    for (index, (_, source)) in sources.iter().enumerate() {
        let lexer = lexer::Lexer::new(index, source).map_err(|e| vec![format!("{e:?}")])?;
        defs.append(&mut parser::parse(lexer).map_err(|e| vec![format!("{e:?}")])?);
    }
    let options = codegen::CodegenOptions::default();
    compile::compile(files, &defs, &options).map_err(|e| e.errors.iter().map(|e| format!("{e:?}")).collect())
}

#[test]
fn the_machine_gives_isle_without_errors() {
    let text = generated("");
    let code = compile_isle(&text).unwrap_or_else(|errors| panic!("{}", errors.join("\n")));
    assert!(code.contains("fn constructor_lower"));
}

#[test]
fn every_rule_of_lower_tells_where_it_comes_from() {
    let text = generated("");
    let lines: Vec<_> = text.lines().collect();
    let mut rules = 0;
    for pair in lines.windows(2) {
        if pair[1].contains("(lower ") {
            rules += 1;
            let line = pair[0]
                .strip_prefix(";; td/NaplesPUPatterns.td:")
                .unwrap_or_else(|| panic!("no place before {}", pair[1]));
            let line = line.split(' ').next().unwrap_or_default();
            assert!(line.parse::<u32>().is_ok_and(|line| line > 0), "{}", pair[0]);
        }
    }
    assert!(rules > 80, "only {rules} rules");
    let from_multiclass = lines
        .iter()
        .filter(|line| line.contains(" from td/NaplesPUPatterns.td:"));
    assert!(from_multiclass.count() > 50);
}

#[test]
fn rules_look_as_promised() {
    let text = generated("");
    for rule in [
        "(rule 12 (lower (iadd (int_fits_in_32 _) a b)) (ADDSSS_32 a b))",
        "(rule 28 (lower (iadd (int_fits_in_32 _) a (simm9 b))) (ADDSSI a b))",
        "(rule 27 (lower (iadd (int_fits_in_32 _) (simm9 b) a)) (ADDSSI a b))",
        "(rule 12 (lower (icmp _ (IntCC.Equal) a @ (value_type $I32) b)) (SEQSISSS_32 a b))",
        "(rule 12 (lower (ishl $I32 a b)) (SLLSSS_32 a (ANDSSI b (simm9_const 31))))",
        "      (if-let addr (aligned_address flags p offset 4))\n      (L32W_Mainmem addr))",
        "(decl SV32WMainmem_U (Vec AMode) Unit)",
        "(rule (MOVEIHSI x0 x1) (emit_s_tw (Op.MOVEIHSI) x0 x1))",
    ] {
        assert!(text.contains(rule), "{rule}");
    }
    // What the hardware does not do, and what needs more than one register to be right.
    for name in ["CROSSPROD_32", "GLV32WScratchpad_U", "ADDVVV_M_32", "JMP", "WRITEMR"] {
        assert!(!text.contains(&format!("(decl {name} ")), "{name}");
    }
}

#[test]
fn the_same_records_give_the_same_text() {
    assert_eq!(generated(""), generated(""));
}

#[test]
fn an_instruction_can_carry_its_pattern() {
    let text = generated(
        "def bitrev : SDNode<\"(bitrev $ty $0)\", SDTIntUnaryOp>;
def REV : InstRR1<RR_NOT, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0), \"rev $dst, $src0\"> {
  let Pattern = [(set GPR32:$dst, (i32 (bitrev GPR32:$src0)))];
}",
    );
    assert!(
        text.contains(";; td/test.td:3\n(rule 12 (lower (bitrev $I32 src0)) (REV src0))"),
        "{text}"
    );
}

#[test]
fn a_number_in_a_pattern_is_matched() {
    let text = generated("def : Pat<(i32 (sub 0, GPR32:$a)), (XORSSI $a, 7)>;");
    assert!(
        text.contains("(rule 32 (lower (isub $I32 (const_i32 0) a)) (XORSSI a (simm9_const 7)))"),
        "{text}"
    );
}

/// Two patterns that match the same with equal complexity: the ISLE compiler must see it.
#[test]
fn ambiguous_patterns_are_found() {
    let text = generated("def : Pat<(i32 (add GPR32:$a, GPR32:$b)), (SUBSSS_32 $a, $b)>;");
    let errors = compile_isle(&text).expect_err("two rules for one instruction");
    assert!(errors.iter().any(|e| e.contains("Overlap")), "{errors:?}");
}

#[test]
fn faults_of_patterns_have_a_place() {
    let cases = [
        // Left side.
        (
            "def : Pat<(i32 (ADDSSS_32 GPR32:$a, GPR32:$b)), (ADDSSS_32 $a, $b)>;",
            "cannot be matched",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a)), (CLZSS_32 $a)>;",
            "`add` takes 2 operands, 1 are given",
        ),
        (
            "def : Pat<(i32 (setcc GPR32:$a, GPR32:$b, SETEQ, SETEQ)), (CLZSS_32 $a)>;",
            "takes 3 operands, 4",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, GPR32:$a)), (CLZSS_32 $a)>;",
            "`$a` is used twice",
        ),
        ("def : Pat<(i32 (add GPR32:$a, GPR32)), (CLZSS_32 $a)>;", "needs a name"),
        (
            "def : Pat<(i32 (add GPR32:$a, GPR32:$p)), (CLZSS_32 $a)>;",
            "ISLE variable",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, simm9:$b)), (CLZSS_32 $a)>;",
            "cannot be a leaf",
        ),
        (
            "def : Pat<(i32 (add i16:$a, i16:$b)), (ADDSSS_32 $a, $b)>;",
            "types do not fit",
        ),
        (
            "def : Pat<(f32 (add GPR32:$a, GPR32:$b)), (ADDSSS_32 $a, $b)>;",
            "types do not fit",
        ),
        ("def : Pat<(add GPR32:$a, GPR32:$b), (ADDSSS_32 $a, $b)>;", "ambiguous"),
        (
            "def : Pat<(i32 (load i32:$a)), (CLZSS_32 $a)>;",
            "must be a ComplexPattern",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, aligned4:$b)), (CLZSS_32 $a)>;",
            "`$b` can only be the last operand",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, (load aligned4:$b))), (CLZSS_32 $a)>;",
            "outermost",
        ),
        (
            "def f : PatFrag<(ops), (add node:$x, node:$x)>;\ndef : Pat<(i32 (f)), (MOVEISI 0)>;",
            "no operand of the fragment",
        ),
        // Right side.
        (
            "def MISSING;\ndef : Pat<(i32 (not GPR32:$a)), (MISSING $a)>;",
            "`MISSING` is no instruction",
        ),
        ("def : Pat<(i32 (not GPR32:$a)), (JUMPREG $a)>;", "patterns cannot use"),
        ("def : Pat<(i32 (not GPR32:$a)), (CLZSS_32 $b)>;", "no operand `$b`"),
        (
            "def : Pat<(i32 (not GPR32:$a)), (ADDSSS_32 $a)>;",
            "takes 2 operands, 1 are given",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (XORSSI $a, 256)>;",
            "256 is not in the range -256 to 255",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (ADDSSS_32 $a, 1)>;",
            "a number cannot be",
        ),
        ("def : Pat<(i32 (not GPR32:$a)), (XORSSI 1, $a)>;", "a number cannot be"),
        (
            "def : Pat<(i32 (add GPR32:$a, imm9:$b)), (ADDSSS_32 $a, $b)>;",
            "`$b` of the pattern is no `GPR32`",
        ),
        ("def : Pat<(i32 (not GPR32:$a)), (MOVE_VS_32 $a)>;", "types do not fit"),
        ("def : Pat<(i32 (not VR512W:$a)), (CLZSS_32 $a)>;", "types do not fit"),
        (
            "def : Pat<(i32 (not GPR32:$a)), (CLZSS_32 (MOVE_VS_32 $a))>;",
            "does not give a `GPR32`",
        ),
        (
            "def : Pat<(i32 (load aligned4:$m)), (S32W_Mainmem $m, $m)>;",
            "has no result",
        ),
        ("def : Pat<(store i32:$v, aligned4:$m), (CLZSS_32 $v)>;", "has a result"),
        // The classes themselves.
        (
            "def bad : SDNode<\"(bad $ty $0 $1)\", SDTIntUnaryOp>;\ndef : Pat<(i32 (bad GPR32:$a)), (CLZSS_32 $a)>;",
            "`$1` is no operand",
        ),
        (
            "def bad : SDNode<\"(bad $ty)\", SDTIntUnaryOp>;\ndef : Pat<(i32 (bad GPR32:$a)), (CLZSS_32 $a)>;",
            "`$0` is missing",
        ),
        (
            "def bad : SDNode<\"(bad $0)\", SDTIntUnaryOp>;\nlet AddedComplexity = 100 in\n\
             def : Pat<(i32 (bad GPR32:$a)), (CLZSS_32 $a)>;",
            "outside 0 to 99",
        ),
    ];
    for (text, message) in cases {
        let parsed = machine_and(text);
        let faults = tdgen::emit_isle(&parsed).expect_err(text);
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        assert!(faults[0].message.contains(message), "{text}\n{}", faults[0].message);
        let span = faults[0].span().unwrap_or_else(|| panic!("no place: {text}"));
        let location = parsed.sources.location(span);
        assert!(
            location.file.to_string().ends_with("test.td"),
            "{text}: {}",
            location.file
        );
        assert!(location.line >= 2, "{text}: line {}", location.line);
    }
}

#[test]
fn a_fragment_that_uses_itself_is_refused() {
    let parsed = machine_and(
        "def loop : PatFrag<(ops node:$x), (not node:$x)> { let Fragment = (not (loop node:$x)); }\n\
         def : Pat<(i32 (loop GPR32:$a)), (CLZSS_32 $a)>;",
    );
    let faults = tdgen::emit_isle(&parsed).expect_err("endless");
    assert!(
        faults[0].message.contains("does a fragment use itself"),
        "{}",
        faults[0].message
    );
}

#[test]
fn all_faults_are_reported() {
    let parsed =
        machine_and("def : Pat<(i32 (not GPR32:$a)), (CLZSS_32 $b)>;\ndef : Pat<(i32 (not GPR32:$a)), (JUMPREG $a)>;");
    assert_eq!(tdgen::emit_isle(&parsed).expect_err("two").len(), 2);
}
