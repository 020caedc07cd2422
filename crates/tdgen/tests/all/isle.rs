//! The ISLE back end: its output for the real description compiles, and faults in patterns are
//! reported with their locations.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

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

/// Returns the description of the machine with more text after it.
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

/// Returns the declarations that the rules use: the compiler's prelude, the declarations of its
/// rules for words and vectors, and CLIF's extractors.
fn before() -> Vec<(String, String)> {
    let isle = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../isle");
    let [prelude, words, lanes] = ["prelude.isle", "words.isle", "lanes.isle"].map(|name| isle.join(name));
    let clif = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("clif-{}", std::process::id()));
    std::fs::create_dir_all(&clif).unwrap();
    cranelift_codegen_meta::generate_isle(&clif).unwrap();
    let texts = [prelude, words, lanes, clif.join("clif_lower.isle")].map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.display().to_string(), text)
    });
    let _ = std::fs::remove_dir_all(&clif);
    texts.into()
}

/// Compiles ISLE; returns the error messages on failure.
fn compile_isle(text: &str) -> Result<String, Vec<String>> {
    static BEFORE: LazyLock<Vec<(String, String)>> = LazyLock::new(before);
    let mut sources = BEFORE.clone();
    sources.push(("td".to_owned(), text.to_owned()));
    let files = Arc::new(files::Files::from_names_and_contents(sources.clone()));
    let mut defs = Vec::new();
    for (index, (_, source)) in sources.iter().enumerate() {
        let lexer = lexer::Lexer::new(index, source).map_err(|e| vec![format!("{e:?}")])?;
        defs.append(&mut parser::parse(lexer).map_err(|e| vec![format!("{e:?}")])?);
    }
    let options = codegen::CodegenOptions::default();
    compile::compile(files, &defs, &options).map_err(|e| e.errors.iter().map(|e| explained(e, &sources)).collect())
}

/// Formats the error; for overlapping rules with their first lines.
fn explained(error: &cranelift_isle::error::Error, sources: &[(String, String)]) -> String {
    let mut message = format!("{error:?}");
    if let cranelift_isle::error::Error::OverlapError { rules, .. } = error {
        for span in rules {
            let rest = &sources[span.from.file].1[span.from.offset..];
            message += &format!("\n  {}", rest.lines().next().unwrap_or_default());
        }
    }
    message
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
            let place = pair[0]
                .strip_prefix(";; td/NaplesPU")
                .unwrap_or_else(|| panic!("no place before {}", pair[1]));
            let line = place.split(' ').next().and_then(|place| place.split_once(".td:"));
            assert!(
                line.is_some_and(|(_, line)| line.parse::<u32>().is_ok_and(|line| line > 0)),
                "{}",
                pair[0]
            );
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
        "      (if-let _ (is_one_instruction flags p offset 2))\n      (let ((addr_in AMode (access_address p offset)))\n        (L32SU_Mainmem addr_in)))",
        "(rule (swap_bits a mask distance)\n      (ORSSS_32 (ANDSSS_32 (SRLSSI a distance) mask) (SLLSSI (ANDSSS_32 a mask) distance)))",
        "(decl partial symbol_address (GlobalValue) Gpr)\n(extern constructor symbol_address symbol_address)",
        "(decl SV32WMainmem_U (Vec AMode) Unit)",
        "(rule (ADDVVV_M_32 x0 x1 x2 x3) (emit_v_tkvv (Op.ADDVVV_M_32) x0 x1 x2 x3))",
        "(decl lane_add (Lanes Lanes) Lanes)",
        "(rule 12 (lane_add a b)\n      (ADDVVV_U_32 a b))",
        "(rule 24 (lane_add a (splat_reg b))\n      (ADDVVS_U_32 a b))",
        "(rule 23 (lane_add (splat_reg b) a)\n      (ADDVVS_U_32 a b))",
        "(rule 28 (lane_add a (splat_simm9 b))\n      (ADDVVI_U a b))",
        "(rule 28 (lane_add_m m a (splat_simm9 b) old)\n      (ADDVVI_M (lane_fresh old) m a b))",
        "(rule 100 (lane_add (splat_const c0) (splat_const c1))\n      (if-let result (fold_lanes (Op.ADDSSS_32) c0 c1))\n      result)",
        "(rule (MOVEIHSI x0 x1) (emit_s_tw (Op.MOVEIHSI) x0 x1))",
    ] {
        assert!(text.contains(rule), "{rule}");
    }
    // Instructions that the hardware does not implement, and instructions that need more than one
    // register to be correct.
    for name in ["CROSSPROD_32", "GLV32WScratchpad_U", "LV32WMainmem_M", "JMP", "WRITEMR"] {
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
fn each_alternative_of_a_fragment_is_a_rule() {
    let text = generated(
        "def either : PatFrags<(ops node:$a), [(ctlz node:$a), (cttz node:$a)]>;
def : Pat<(i32 (either GPR32:$a)), (CLZSS_32 $a)>;",
    );
    for opcode in ["clz", "ctz"] {
        let rule = format!("(rule 12 (lower ({opcode} $I32 a)) (CLZSS_32 a))");
        let place = format!(";; td/test.td:3\n{rule}");
        assert!(text.contains(&place), "{rule}");
    }
}

#[test]
fn results_are_bound_once() {
    let text = generated(
        "def : Pat<(i32 (uaddo (i32 (not GPR32:$a)), GPR32:$b)),\n\
         (seq (ADDSSS_32 $a, $b):$sum, (results $sum, (SLTUISSS_32 $sum, $a)))>;",
    );
    assert!(
        text.contains(
            "(rule 24 (lower (uadd_overflow $I32 (bnot _ a) b))\n      (let ((a_in Gpr a)\n            \
             (sum Gpr (ADDSSS_32 a_in b)))\n        (output_pair sum (SLTUISSS_32 sum a_in))))"
        ),
        "{text}"
    );
}

#[test]
fn types_have_names_for_transforms() {
    let text = generated("def : Pat<(narrow:$t (add sext32:$a, imm:$n)), (SLLSSI $a, (amount $t, $n))>;");
    assert!(
        text.contains(
            "(rule 28 (lower (iadd (int_narrow t) a n @ (is_const _))) (SLLSSI (sext32 a) (const_amount t n)))"
        ),
        "{text}"
    );
}

#[test]
fn alternatives_are_as_many_rules() {
    let text = generated(
        "def either : PatFrags<(ops node:$x), [(ctlz node:$x), (cttz node:$x)]>;\n\
         def : Pat<(i32 (not (either GPR32:$a))), (CLZSS_32 $a)>;",
    );
    for opcode in ["clz", "ctz"] {
        let rule = format!("(rule 24 (lower (bnot $I32 ({opcode} _ a))) (CLZSS_32 a))");
        assert!(text.contains(&rule), "{rule}");
    }
}

#[test]
fn operands_have_rules_of_their_own() {
    let text = generated(
        "def half : ComplexPattern<int32, GPR32, \"half\">;\n\
         def : SelectPat<half, (i32 (shl GPR32:$a, 1)), (COPY $a)>;\n\
         def : SelectPat<half, (i8 GPR32:$a), (SRLSSI (zext32 $a), 1)>;",
    );
    for rule in [
        "(rule 32 (half (ishl $I32 a (const_i32 1)))\n      (let ((a_in Gpr a))\n        a_in))",
        "(rule 0 (half a @ (value_type $I8)) (SRLSSI (zext32 a) (simm9_const 1)))",
    ] {
        assert!(text.contains(rule), "{rule}\n{text}");
    }
}

#[test]
fn a_number_in_a_pattern_is_matched() {
    let text = generated("def : Pat<(i32 (sub 0, GPR32:$a)), (XORSSI $a, 7)>;");
    assert!(
        text.contains("(rule 32 (lower (isub $I32 (const_i32 0) a)) (XORSSI a (simm9_const 7)))"),
        "{text}"
    );
}

#[test]
fn a_node_of_the_target_has_patterns() {
    let text = generated(
        "def lane_min : TargetNode<(outs lanes), (ins lanes:$a, lanes:$b), [SDNPCommutative]>;\n\
         def : Pat<(lane_min lanes:$a, lanes:$b), (lane_select (lane_setlt $a, $b), $a, $b)>;\n\
         def : Pat<(lane_min lanes:$a, 7), (seq (lane_setlt $a, 7):$m, (lane_select $m, $a, 7))>;\n\
         def lane_use : TargetNode<(outs), (ins vt:$ty, lanes:$a, MEMri:$addr)>;\n\
         def : Pat<(lane_use v16i8, lanes:$a, MEMri:$addr), (SV32BMainmem_U $a, $addr)> { let Predicates = [HasFPU]; }",
    );
    for rule in [
        "(rule 12 (lane_min a b)\n      (lane_select (lane_setlt a b) a b))",
        "(rule 32 (lane_min a (splat_const 0x7))\n      (let ((m Word (lane_setlt a (const_lanes 0x7))))\n",
        "(rule 31 (lane_min (splat_const 0x7) a)\n",
        "(rule 32 (lane_use $I8X16 a addr)\n      (if-let _ (has_fpu))\n      (SV32BMainmem_U a addr))",
    ] {
        assert!(text.contains(rule), "{rule}\n{text}");
    }
}

/// Two patterns of equal complexity that match the same: the ISLE compiler must refuse them.
#[test]
fn ambiguous_patterns_are_found() {
    let text = generated("def : Pat<(i32 (add GPR32:$a, GPR32:$b)), (SUBSSS_32 $a, $b)>;");
    let errors = compile_isle(&text).expect_err("two rules for one instruction");
    assert!(errors.iter().any(|e| e.contains("Overlap")), "{errors:?}");
}

/// A flat table of patterns, each with a part of its message.
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
            "must be an AddrPattern",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, aligned2:$b)), (CLZSS_32 $a)>;",
            "`$b` can only be the last operand",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, (load aligned2:$b))), (CLZSS_32 $a)>;",
            "outermost",
        ),
        (
            "def f : PatFrag<(ops), (add node:$x, node:$x)>;\ndef : Pat<(i32 (f)), (MOVEISI 0)>;",
            "is not an operand of the fragment",
        ),
        // Right side.
        (
            "def MISSING;\ndef : Pat<(i32 (not GPR32:$a)), (MISSING $a)>;",
            "`MISSING` is not an instruction",
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
            "def : Pat<(i32 (not GPR32:$a)), (ADDSSS_32 $a, 0x100000000)>;",
            "4294967296 is not in the range",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (NONZERO (INVERT 1))>;",
            "a number cannot be",
        ),
        (
            "def : Pat<(i32 (uaddo GPR32:$a, GPR32:$b)), (results $a)>;",
            "has 2 results, 1 are given",
        ),
        (
            "def : Pat<(i32 (uaddo GPR32:$a, GPR32:$b)), (CLZSS_32 $a)>;",
            "has 2 results",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (seq (CLZSS_32 $a), (CTZSS_32 $a))>;",
            "needs a name",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (seq (CLZSS_32 $a):$a, (CTZSS_32 $a))>;",
            "is an operand already",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (seq (JUMP):$a2, (CTZSS_32 $a))>;",
            "has no value",
        ),
        (
            "def : Pat<(i32:$t (not GPR32:$a)), (SRLSSI $a, (amount $t))>;",
            "`amount` takes 2 operands, 1 are given",
        ),
        (
            "def : Pat<(i32 (not GPR32:$a)), (SRLSSI $a, (width $t))>;",
            "no operand `$t`",
        ),
        ("def : Pat<(i32 (not GPR32:$a_in)), (CLZSS_32 $a_in)>;", "ISLE variable"),
        (
            "def : SelectPat<truth, (int32 cond:$a), (COPY $a)>;",
            "is not a `GPR32`",
        ),
        (
            "def : Pat<(i32 (add GPR32:$a, imm9:$b)), (ADDSSS_32 $a, $b)>;",
            "`$b` of the pattern is not a `GPR32`",
        ),
        ("def : Pat<(i32 (not GPR32:$a)), (MOVE_VS_32 $a)>;", "types do not fit"),
        ("def : Pat<(i32 (not VR512W:$a)), (CLZSS_32 $a)>;", "types do not fit"),
        (
            "def : Pat<(i32 (not GPR32:$a)), (CLZSS_32 (MOVE_VS_32 $a))>;",
            "does not give a `GPR32`",
        ),
        (
            "def : Pat<(i32 (load aligned2:$m)), (S32W_Mainmem (L32W_Mainmem $m), $m)>;",
            "has no result",
        ),
        ("def : Pat<(store i32:$v, aligned2:$m), (CLZSS_32 $v)>;", "has a result"),
        // Target nodes.
        (
            "def : Pat<(lane_add lanes:$a), (COPY $a)>;",
            "`lane_add` takes 2 operands, 1 are given",
        ),
        (
            "def : Pat<(lane_add lanes:$a, GPR32:$b), (COPY $a)>;",
            "`GPR32` cannot be matched where the node has a `lanes`",
        ),
        (
            "def : Pat<(lane_add lanes:$a, word_simm9:$b), (COPY $a)>;",
            "`word_simm9` is not a leaf of `lanes`",
        ),
        (
            "def : Pat<(lane_add lanes:$a, (lane_add 1, 2)), (COPY $a)>;",
            "this is not allowed in the pattern",
        ),
        (
            "def : Pat<(lane_extract lanes:$a, 3), (COPY $a)>;",
            "a number cannot be matched by `simm9`",
        ),
        (
            "def : Pat<(lane_add lanes:$a, splat_simm9:$b), (ADDVVV_U_32 $a, $b)>;",
            "`$b` is not a `VR512W`",
        ),
        (
            "def : Pat<(lane_setlt lanes:$a, lanes:$b), (ADDVVV_U_32 $a, $b)>;",
            "the result is not a `lane_mask`",
        ),
        // The classes themselves.
        (
            "def bad : SDNode<\"(bad $ty $0 $1)\", SDTIntUnaryOp>;\ndef : Pat<(i32 (bad GPR32:$a)), (CLZSS_32 $a)>;",
            "`$1` is not an operand",
        ),
        (
            "def bad : SDNode<\"(bad $ty)\", SDTIntUnaryOp>;\ndef : Pat<(i32 (bad GPR32:$a)), (CLZSS_32 $a)>;",
            "`$0` is missing",
        ),
        (
            "def bad : SDNode<\"(bad $0)\", SDTIntUnaryOp>;\nlet AddedComplexity = 100 in\n\
             def : Pat<(i32 (bad GPR32:$a)), (CLZSS_32 $a)>;",
            "outside -100 to 99",
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
