//! Generates target descriptions of the size of LLVM's largest ones. The text depends only on the
//! size.
//!
//! `wide` resembles a CISC target: many instructions with many fields, written as one `defm` per
//! line over shallow multiclasses, and as many patterns. `deep` resembles a GPU target: few lines,
//! long inheritance chains, nested multiclasses, class values that compute, and `let`s around
//! everything.

use std::fmt::Write;

/// The kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Many lines, many records, many fields.
    Wide,
    /// Few lines that expand to as many records.
    Deep,
}

impl Kind {
    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        match name {
            "wide" => Some(Kind::Wide),
            "deep" => Some(Kind::Deep),
            _ => None,
        }
    }
}

/// Generates a program of a kind; `scale` is a percentage of the full size.
pub fn program(kind: Kind, scale: usize) -> String {
    let mut out = String::new();
    let scale = scale.max(1);
    common(&mut out);
    match kind {
        Kind::Wide => wide(&mut out, scale),
        Kind::Deep => deep(&mut out, scale),
    }
    out
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {{
        let _ = writeln!($out, $($arg)*);
    }};
}

/// A small generator of pseudo-random numbers, sufficient to vary names and operands.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const FLAGS: [&str; 28] = [
    "isPreISelOpcode",
    "isReturn",
    "isBranch",
    "isEHScopeReturn",
    "isIndirectBranch",
    "isCompare",
    "isMoveImm",
    "isMoveReg",
    "isBitcast",
    "isSelect",
    "isBarrier",
    "isCall",
    "isAdd",
    "isTrap",
    "canFoldAsLoad",
    "mayLoad",
    "mayStore",
    "mayRaise",
    "isConvertible",
    "isCommutable",
    "isTerminator",
    "isReMaterializable",
    "isPredicable",
    "hasDelaySlot",
    "usesCustomInserter",
    "hasPostISelHook",
    "isPseudo",
    "isCodeGenOnly",
];

/// Writes the common base of both kinds: value types, registers, operands, selection nodes,
/// patterns.
fn common(out: &mut String) {
    out.push_str(
        "class DagOperator; def ops : DagOperator;
class ValueType<int size, int value> { string Namespace = \"MVT\"; int Size = size; int Value = value; bit isFP = 0; }
class Predicate<string cond> { string CondString = cond; bit AssemblerMatcherPredicate = 0; list<dag> AssemblerCond = []; }
class Register<string n, list<string> alt = []> {
  string Namespace = \"\"; string AsmName = n; list<string> AltNames = alt; list<Register> Aliases = []; list<Register> SubRegs = [];
  list<int> DwarfNumbers = []; list<int> CostPerUse = [0]; bits<16> HWEncoding = 0; bit isArtificial = 0; bit isConstant = 0;
}
class RegisterClass<string ns, list<ValueType> types, int align, dag members> {
  string Namespace = ns; list<ValueType> RegTypes = types; int Size = 0; int Alignment = align; int CopyCost = 1; dag MemberList = members;
  bit isAllocatable = 1; list<dag> AltOrders = []; code AltOrderSelect = [{}]; int AllocationPriority = 0; string DiagnosticType = \"\";
}
class Operand<ValueType ty> {
  ValueType Type = ty; string PrintMethod = \"printOperand\"; string EncoderMethod = \"\"; string DecoderMethod = \"\"; bit hasCompleteDecoder = 1;
  dag MIOperandInfo = (ops); string OperandType = \"OPERAND_UNKNOWN\"; string OperandNamespace = \"MCOI\";
}
def outs : DagOperator; def ins : DagOperator; def set : DagOperator; def node : DagOperator;
class SDTypeConstraint<int opnum> { int OperandNum = opnum; }
class SDTCisVT<int n, ValueType vt> : SDTypeConstraint<n> { ValueType VT = vt; }
class SDTCisSameAs<int n, int other> : SDTypeConstraint<n> { int OtherOperandNum = other; }
class SDTypeProfile<int r, int o, list<SDTypeConstraint> c> { int NumResults = r; int NumOperands = o; list<SDTypeConstraint> Constraints = c; }
class SDPatternOperator { list<string> Properties = []; }
class SDNode<string opc, SDTypeProfile prof, list<string> props = []> : SDPatternOperator {
  string Opcode = opc; string SDClass = \"SDNode\"; let Properties = props; SDTypeProfile TypeProfile = prof; bit IsStrictFP = 0; bits<32> TSFlags = 0;
}
class PatFrags<dag o, list<dag> frags, code pred = [{}]> : SDPatternOperator {
  dag Operands = o; list<dag> Fragments = frags; code PredicateCode = pred; code ImmediateCode = [{}]; bit IsLoad = ?; bit IsStore = ?;
  bit IsAtomic = ?; int MinAlignment = ?; ValueType MemoryVT = ?;
}
class PatFrag<dag o, dag frag, code pred = [{}]> : PatFrags<o, [frag], pred>;
class Pattern<dag p, list<dag> r> { dag PatternToMatch = p; list<dag> ResultInstrs = r; list<Predicate> Predicates = []; int AddedComplexity = 0; bit GISelShouldIgnore = 0; }
class Pat<dag p, dag r> : Pattern<p, [r]>;
class SchedWrite; class SchedReadWrite : SchedWrite { list<int> Units = []; int Latency = 1; list<int> ReleaseAtCycles = []; }
def i1 : ValueType<1, 2>; def i8 : ValueType<8, 5>; def i16 : ValueType<16, 6>; def i32 : ValueType<32, 7>; def i64 : ValueType<64, 8>;
def f16 : ValueType<16, 12>; def f32 : ValueType<32, 13>; def f64 : ValueType<64, 14>;
def v16i8 : ValueType<128, 20>; def v8i16 : ValueType<128, 21>; def v4i32 : ValueType<128, 22>; def v2i64 : ValueType<128, 23>;
def v32i8 : ValueType<256, 24>; def v16i16 : ValueType<256, 25>; def v8i32 : ValueType<256, 26>; def v4i64 : ValueType<256, 27>;
def v64i8 : ValueType<512, 28>; def v32i16 : ValueType<512, 29>; def v16i32 : ValueType<512, 30>; def v8i64 : ValueType<512, 31>;
def undef : SDPatternOperator;
",
    );
    line!(out, "class Instruction {{");
    line!(
        out,
        "  string Namespace = \"\"; dag OutOperandList = (outs); dag InOperandList = (ins); string AsmString = \"\";"
    );
    line!(
        out,
        "  list<dag> Pattern = []; list<Register> Uses = []; list<Register> Defs = []; list<Predicate> Predicates = [];"
    );
    line!(
        out,
        "  int Size = 0; int CodeSize = 0; int AddedComplexity = 0; list<SchedWrite> SchedRW = []; string Constraints = \"\";"
    );
    line!(
        out,
        "  string DecoderNamespace = \"\"; string AsmVariantName = \"\"; string PostEncoderMethod = \"\"; bits<64> TSFlags = 0;"
    );
    line!(
        out,
        "  field bits<64> SoftFail = 0; string TwoOperandAliasConstraint = \"\"; bit UseNamedOperandTable = 0;"
    );
    for flag in FLAGS {
        line!(out, "  bit {flag} = 0;");
    }
    line!(
        out,
        "  bit hasSideEffects = ?; bit hasExtraSrcRegAllocReq = 0; bit isAsCheapAsAMove = 0; bit isConvergent = 0;"
    );
    line!(out, "}}");
    for (node, n) in [
        ("add", 2),
        ("sub", 2),
        ("mul", 2),
        ("and", 2),
        ("or", 2),
        ("xor", 2),
        ("shl", 2),
        ("srl", 2),
        ("load", 1),
        ("fneg", 1),
    ] {
        let same: Vec<String> = (1..=n).map(|at| format!("SDTCisSameAs<0, {at}>")).collect();
        line!(
            out,
            "def {node} : SDNode<\"ISD::{}\", SDTypeProfile<1, {n}, [{}]>>;",
            node.to_uppercase(),
            same.join(", ")
        );
    }
}

const NODES: [&str; 8] = ["add", "sub", "mul", "and", "or", "xor", "shl", "srl"];

fn wide(out: &mut String, scale: usize) {
    let mut random = Random(7);
    line!(
        out,
        "class RegX<string n, bits<16> enc, list<Register> subs = []> : Register<n> {{ let Namespace = \"Wide\"; let HWEncoding = enc; let SubRegs = subs; }}"
    );
    for class in ["R", "X", "Y", "Z", "K"] {
        for at in 0..32 {
            line!(out, "def {class}{at} : RegX<\"{}{at}\", {at}>;", class.to_lowercase());
        }
    }
    for (class, types) in [
        ("R", "i8, i16, i32, i64"),
        ("X", "v16i8, v8i16, v4i32, v2i64"),
        ("Y", "v32i8, v16i16, v8i32, v4i64"),
        ("Z", "v64i8, v32i16, v16i32, v8i64"),
        ("K", "i1, i8, i16"),
    ] {
        let members: Vec<String> = (0..32).map(|at| format!("{class}{at}")).collect();
        line!(
            out,
            "def {class}C : RegisterClass<\"Wide\", [{types}], 64, (ops {})>;",
            members.join(", ")
        );
    }
    for at in 0..40 {
        line!(out, "def HasF{at} : Predicate<\"Subtarget->hasF{at}()\">;");
    }
    out.push_str(WIDE_CLASSES);
    for at in 0..120 {
        line!(
            out,
            "def Write{at} : SchedReadWrite {{ let Units = [{}, {}]; let Latency = {}; }}",
            at % 7,
            at % 5,
            at % 11
        );
    }
    // Intrinsics: records with lists of types and properties, one per line.
    for at in 0..140 * scale {
        let (a, b) = (
            random.pick(&["i32", "i64", "v4i32", "v8i32", "v16i32", "f32"]),
            random.pick(&["i8", "i32", "v2i64"]),
        );
        line!(
            out,
            "def int_wide_{at} : Intrinsic<[{a}], [{a}, {b}], [NoMem<{}>], \"llvm.wide.op{at}\">;",
            at % 4
        );
    }
    // Instructions over multiclasses: each line defines several, with their patterns.
    for at in 0..18 * scale {
        let node = random.pick(&NODES);
        let (opc, write, feature) = (random.below(256), random.below(120), random.below(40));
        line!(out, "let AddedComplexity = {} in", at % 20);
        line!(
            out,
            "defm VOP{at} : vop_sizes<{opc}, \"vop{at}\", {node}, Write{write}, HasF{feature}, {}>;",
            at % 2
        );
    }
    for at in 0..28 * scale {
        let (opc, write) = (random.below(256), random.below(120));
        line!(
            out,
            "let Predicates = [HasF{}], mayLoad = {}, hasSideEffects = 0 in {{",
            at % 40,
            at % 2
        );
        line!(
            out,
            "  def SI{at}rr : I<{opc}, RawFrm, (outs RC:$dst), (ins RC:$src1, RC:$src2), \"si{at}\\t{{$src2, $dst|$dst, $src2}}\", []>, Sched<[Write{write}]>, PS;"
        );
        line!(
            out,
            "  def SI{at}ri : Ii8<{opc}, MRMSrcReg, (outs RC:$dst), (ins RC:$src1, imm8:$src2), \"si{at}i\\t{{$src2, $dst|$dst, $src2}}\","
        );
        line!(
            out,
            "    [(set RC:$dst, ({} RC:$src1, imm8:$src2))]>, Sched<[Write{write}]>, PD, REX_W {{",
            random.pick(&NODES)
        );
        line!(out, "    let Constraints = \"$src1 = $dst\";");
        line!(out, "    let isCommutable = {};", at % 2);
        line!(out, "  }}");
        line!(out, "}}");
    }
    // Patterns: each is an anonymous record.
    for at in 0..120 * scale {
        let (a, b) = (random.pick(&NODES), random.pick(&NODES));
        let n = random.below(18 * scale);
        line!(
            out,
            "def : Pat<(v4i32 ({a} (v4i32 ({b} (v4i32 XC:$src1), (v4i32 XC:$src2))), (v4i32 XC:$src{}))),",
            at % 3
        );
        line!(
            out,
            "          (VOP{n}DZ128rr XC:$src1, (VOP{n}DZ128rr XC:$src2, XC:$src1))>;"
        );
    }
    // Scheduling models: lists of names, and records over lists.
    for at in 0..30 * scale {
        let n = random.below(28 * scale);
        line!(out, "def : InstRW<[Write{}], (instrs SI{n}rr, SI{n}ri)>;", at % 120);
        line!(
            out,
            "def ResGroup{at} : WriteRes<Write{}, [{}, {}]> {{",
            at % 120,
            at % 6,
            at % 9
        );
        line!(out, "  let Latency = {};", at % 30);
        line!(out, "  let ReleaseAtCycles = [{}, {}];", at % 3, at % 4);
        line!(out, "}}");
    }
    for at in 0..50 * scale {
        let n = random.below(28 * scale);
        line!(
            out,
            "def : InstAlias<\"alias{at}\\t{{$src, $dst|$dst, $src}}\", (SI{n}rr RC:$dst, RC:$src), {}>;",
            at % 2
        );
    }
}

const WIDE_CLASSES: &str = "
def imm8 : Operand<i8>; def imm32 : Operand<i32>; def mem : Operand<i32> { let PrintMethod = \"printMem\"; let MIOperandInfo = (ops RC, imm8, RC, imm32); }
class Format<bits<7> v> { bits<7> Value = v; }
def RawFrm : Format<1>; def MRMDestReg : Format<40>; def MRMSrcMem : Format<25>; def MRMSrcReg : Format<41>;
class Map<bits<4> v> { bits<4> Value = v; }
def OB : Map<0>; def TB : Map<1>; def T8 : Map<2>; def TA : Map<3>;
class Prefix<bits<3> v> { bits<3> Value = v; }
def NoPrfx : Prefix<0>; def PDp : Prefix<1>; def XSp : Prefix<2>; def PSp : Prefix<4>;
class ImmType<bits<4> v> { bits<4> Value = v; } def NoImm : ImmType<0>; def Imm8 : ImmType<1>;
class Domain<bits<2> v> { bits<2> Value = v; } def GenericDomain : Domain<0>; def PackedInt : Domain<3>;
class OpSize<bits<2> v> { bits<2> Value = v; } def OpSizeFixed : OpSize<0>; def OpSize16 : OpSize<1>;
class Enc<bits<2> v> { bits<2> Value = v; } def EncNormal : Enc<0>; def EncVEX : Enc<1>; def EncEVEX : Enc<3>;
class CD8<int v> { int Value = v; } def CD8VF : CD8<0>; def CD8T1 : CD8<4>;
class PD { Prefix OpPrefix = PDp; } class PS { Prefix OpPrefix = PSp; } class XS { Prefix OpPrefix = XSp; }
class REX_W { bit hasREX_W = 1; } class TAm { Map OpMap = TA; } class EVEX { Enc OpEnc = EncEVEX; }
class EVEX_V512 : EVEX { bit hasEVEX_L2 = 1; bit hasVEX_L = 0; } class EVEX_V256 : EVEX { bit hasEVEX_L2 = 0; bit hasVEX_L = 1; }
class EVEX_V128 : EVEX { bit hasEVEX_L2 = 0; bit hasVEX_L = 0; }
class EVEX_K { bit hasEVEX_K = 1; } class EVEX_KZ : EVEX_K { bit hasEVEX_Z = 1; } class EVEX_B { bit hasEVEX_B = 1; }
class EVEX_CD8<int esize, CD8 form> { int CD8_EltSize = !srl(esize, 3); bits<3> CD8_Form = form.Value; }
class Sched<list<SchedWrite> w> { list<SchedWrite> SchedRW = w; }
class WInst<bits<8> opcod, Format f, ImmType i, dag outs, dag ins, string asm, Domain d = GenericDomain> : Instruction {
  let Namespace = \"Wide\";
  bits<8> Opcode = opcod; Format Form = f; bits<7> FormBits = Form.Value; ImmType ImmT = i;
  let OutOperandList = outs; let InOperandList = ins; let AsmString = asm; let SchedRW = [];
  OpSize OpSize = OpSizeFixed; bits<2> OpSizeBits = OpSize.Value; OpSize AdSize = OpSizeFixed; bits<2> AdSizeBits = AdSize.Value;
  Prefix OpPrefix = NoPrfx; bits<3> OpPrefixBits = OpPrefix.Value; Map OpMap = OB; bits<4> OpMapBits = OpMap.Value;
  bit hasREX_W = 0; Domain ExeDomain = d; bit hasREPPrefix = 0; Enc OpEnc = EncNormal; bits<2> OpEncBits = OpEnc.Value;
  bit IgnoresW = 0; bit hasVEX_4V = 0; bit hasVEX_L = 0; bit ignoresVEX_L = 0; bit hasEVEX_K = 0; bit hasEVEX_Z = 0; bit hasEVEX_L2 = 0;
  bit hasEVEX_B = 0; bit hasEVEX_NF = 0; bits<3> CD8_Form = 0; int CD8_EltSize = 0; bit hasEVEX_RC = 0; bit hasNoTrackPrefix = 0;
  bits<2> EVEX_LL; let EVEX_LL{0} = hasVEX_L; let EVEX_LL{1} = hasEVEX_L2;
  bits<7> VectSize = !shl(16, EVEX_LL);
  bits<7> CD8_Scale = !if (!eq (OpEnc.Value, EncEVEX.Value), !if (CD8_Form{2}, !shl(CD8_EltSize, CD8_Form{1-0}), !if (hasEVEX_B, CD8_EltSize, !srl(VectSize, CD8_Form{1-0}))), 0);
  let TSFlags{6-0} = FormBits; let TSFlags{8-7} = OpSizeBits; let TSFlags{10-9} = AdSizeBits; let TSFlags{13-11} = OpPrefixBits;
  let TSFlags{17-14} = OpMapBits; let TSFlags{18} = hasREX_W; let TSFlags{22-19} = ImmT.Value; let TSFlags{24-23} = ExeDomain.Value;
  let TSFlags{26-25} = OpEncBits; let TSFlags{34-27} = Opcode; let TSFlags{35} = hasVEX_4V; let TSFlags{36} = hasVEX_L;
  let TSFlags{37} = hasEVEX_K; let TSFlags{38} = hasEVEX_Z; let TSFlags{39} = hasEVEX_L2; let TSFlags{40} = hasEVEX_B;
  let TSFlags{47-41} = CD8_Scale; let TSFlags{48} = hasEVEX_RC; let TSFlags{49} = hasNoTrackPrefix;
}
class I<bits<8> o, Format f, dag outs, dag ins, string asm, list<dag> pattern, Domain d = GenericDomain> : WInst<o, f, NoImm, outs, ins, asm, d> {
  let Pattern = pattern; let CodeSize = 3;
}
class Ii8<bits<8> o, Format f, dag outs, dag ins, string asm, list<dag> pattern, Domain d = GenericDomain> : WInst<o, f, Imm8, outs, ins, asm, d> {
  let Pattern = pattern; let CodeSize = 3;
}
class AVX5128I<bits<8> o, Format F, dag outs, dag ins, string asm, list<dag> pattern> : I<o, F, outs, ins, asm, pattern, PackedInt> { let OpPrefix = PDp; let OpMap = T8; }
class VTInfo<int numelts, ValueType eltvt, RegisterClass rc, string suffix = \"\"> {
  RegisterClass RC = rc; ValueType EltVT = eltvt; int NumElts = numelts; RegisterClass KRC = KC; string Suffix = suffix;
  int EltSize = EltVT.Size; int Size = !mul(NumElts, EltSize); string VTName = \"v\" # numelts # EltVT; ValueType VT = !cast<ValueType>(VTName);
  string ZSuffix = !if (!eq (Size, 128), \"Z128\", !if (!eq (Size, 256), \"Z256\", \"Z\"));
  string BroadcastStr = \"{1to\" # NumElts # \"}\"; dag ImmAllZeros = (VT undef);
}
class VL<VTInfo i512, VTInfo i256, VTInfo i128> { VTInfo info512 = i512; VTInfo info256 = i256; VTInfo info128 = i128; }
def info_b : VL<VTInfo<64, i8, ZC, \"b\">, VTInfo<32, i8, YC, \"b\">, VTInfo<16, i8, XC, \"b\">>;
def info_w : VL<VTInfo<32, i16, ZC, \"w\">, VTInfo<16, i16, YC, \"w\">, VTInfo<8, i16, XC, \"w\">>;
def info_d : VL<VTInfo<16, i32, ZC, \"d\">, VTInfo<8, i32, YC, \"d\">, VTInfo<4, i32, XC, \"d\">>;
def info_q : VL<VTInfo<8, i64, ZC, \"q\">, VTInfo<4, i64, YC, \"q\">, VTInfo<2, i64, XC, \"q\">>;
class InProp; class NoMem<int n> : InProp { int N = n; }
class Intrinsic<list<ValueType> r, list<ValueType> p, list<InProp> props, string name> : SDPatternOperator {
  string LLVMName = name; string TargetPrefix = \"wide\"; list<ValueType> RetTypes = r; list<ValueType> ParamTypes = p; list<InProp> IntrProperties = props;
  list<ValueType> Types = !listconcat(r, p); bit isTarget = 0; bit DisableDefaultAttributes = true; string Clang = !subst(\".\", \"_\", name);
}
class InstRW<list<SchedReadWrite> rw, dag instrs> { list<SchedReadWrite> OperandReadWrites = rw; dag Instrs = instrs; bit Unsupported = 0; }
def instrs : DagOperator;
class WriteRes<SchedWrite w, list<int> res> { SchedWrite WriteType = w; list<int> ProcResources = res; list<int> ReleaseAtCycles = []; int Latency = 1; int NumMicroOps = 1; bit BeginGroup = 0; bit SingleIssue = 0; }
class InstAlias<string asm, dag r, int emit = 1> { string AsmString = asm; dag ResultInst = r; int EmitPriority = emit; list<Predicate> Predicates = []; bit UseInstrInfo = 1; string AsmVariantName = \"\"; }
multiclass maskable<bits<8> O, Format F, VTInfo _, dag Outs, dag Ins, string Opc, string Att, string Intel, dag RHS, bit comm> {
  let isCommutable = comm in def NAME : AVX5128I<O, F, Outs, Ins, Opc#\"\\t{\"#Att#\", $dst|$dst, \"#Intel#\"}\", [(set _.RC:$dst, RHS)]>;
  let isCommutable = comm in def NAME#k : AVX5128I<O, F, Outs, !con((ins _.RC:$src0, _.KRC:$mask), Ins),
    Opc#\"\\t{\"#Att#\", $dst {${mask}}|$dst {${mask}}, \"#Intel#\"}\", [(set _.RC:$dst, (and RHS, _.RC:$src0))]>, EVEX_K { let Constraints = \"$src0 = $dst\"; }
  def NAME#kz : AVX5128I<O, F, Outs, !con((ins _.KRC:$mask), Ins),
    Opc#\"\\t{\"#Att#\", $dst {${mask}} {z}|$dst {${mask}} {z}, \"#Intel#\"}\", [(set _.RC:$dst, (and RHS, _.ImmAllZeros))]>, EVEX_KZ;
}
multiclass binop_rm<bits<8> opc, string str, SDNode OpNode, VTInfo _, SchedReadWrite sched, bit comm = 0> {
  defm rr : maskable<opc, MRMSrcReg, _, (outs _.RC:$dst), (ins _.RC:$src1, _.RC:$src2), str, \"$src2, $src1\", \"$src1, $src2\",
    (_.VT (OpNode _.RC:$src1, _.RC:$src2)), comm>, Sched<[sched]>;
  defm rm : maskable<opc, MRMSrcMem, _, (outs _.RC:$dst), (ins _.RC:$src1, mem:$src2), str, \"$src2, $src1\", \"$src1, $src2\",
    (_.VT (OpNode _.RC:$src1, (_.VT (load mem:$src2)))), 0>, Sched<[sched]>;
  def : Pat<(_.VT (OpNode (_.VT (load mem:$src2)), _.RC:$src1)), (!cast<Instruction>(NAME#rm) _.RC:$src1, mem:$src2)>;
}
multiclass binop_vl<bits<8> opc, string str, SDNode OpNode, VL vti, SchedReadWrite sched, Predicate prd, bit comm = 0> {
  let Predicates = [prd] in defm Z : binop_rm<opc, str, OpNode, vti.info512, sched, comm>, EVEX_V512, EVEX_CD8<64, CD8VF>;
  let Predicates = [prd, HasF1] in {
    defm Z256 : binop_rm<opc, str, OpNode, vti.info256, sched, comm>, EVEX_V256, EVEX_CD8<32, CD8VF>;
    defm Z128 : binop_rm<opc, str, OpNode, vti.info128, sched, comm>, EVEX_V128, EVEX_CD8<16, CD8VF>;
  }
}
multiclass vop_sizes<bits<8> opc, string str, SDNode OpNode, SchedReadWrite sched, Predicate prd, bit comm = 0> {
  defm D : binop_vl<opc, str#\"d\", OpNode, info_d, sched, prd, comm>;
}
";

fn deep(out: &mut String, scale: usize) {
    let mut random = Random(11);
    out.push_str(DEEP_CLASSES);
    // A chain of classes, each with additional fields and overrides.
    let length = 14;
    for level in 1..=length {
        let parent = if level == 1 {
            "DInst<outs, ins, asm>".to_owned()
        } else {
            format!("Level{}<outs, ins, asm, P>", level - 1)
        };
        line!(
            out,
            "class Level{level}<dag outs, dag ins, string asm, Profile P> : {parent} {{"
        );
        line!(out, "  bit flag{level} = !ne(P.NumSrc, {level});");
        line!(out, "  int stage{level} = !add(P.NumSrc, {level});");
        line!(out, "  string tag{level} = asm # \"_l{level}\";");
        line!(out, "  let TSFlags{{{level}}} = flag{level};");
        line!(out, "  let Size = {};", 4 + level % 3 * 4);
        line!(out, "}}");
    }
    for level in 0..24 {
        line!(
            out,
            "def Gen{level} : Predicate<\"Subtarget->getGeneration() >= {level}\"> {{ int Index = {level}; }}"
        );
    }
    line!(out, "{}", DEEP_MULTICLASSES.replace("LEVEL", &format!("Level{length}")));
    let types = ["i16", "i32", "i64", "f16", "f32", "f64"];
    for at in 0..5 * scale {
        let (dst, a, b, c) = (
            random.pick(&types),
            random.pick(&types),
            random.pick(&types),
            random.pick(&types),
        );
        line!(
            out,
            "def PROF{at} : Profile<[{dst}, {a}, {b}, {}]>;",
            if at % 2 == 0 { c } else { "untyped" }
        );
        line!(
            out,
            "let isCommutable = {}, mayRaise = {}, Uses = [{}], SubtargetPredicate = Gen{} in",
            at % 2,
            at % 3 / 2,
            if at % 2 == 0 { "EXEC" } else { "MODE, EXEC" },
            at % 24
        );
        line!(
            out,
            "defm V_OP{at} : VOP_all<\"v_op{at}\", PROF{at}, {}>;",
            random.pick(&NODES)
        );
        line!(
            out,
            "let hasSideEffects = 0 in defm V_OP{at} : VOP_real_all<{}>;",
            at % 512
        );
    }
    for at in 0..3 * scale {
        line!(
            out,
            "let mayLoad = 1, mayStore = {}, hasSideEffects = 0, SchedRW = []<SchedWrite> in {{",
            at % 2
        );
        line!(out, "  let isConvergent = {} in {{", at % 2);
        line!(
            out,
            "    let AddedComplexity = {} in defm BUF{at} : BUF_all<\"buf{at}\", PROF{}>;",
            at % 12,
            at % (5 * scale)
        );
        line!(out, "  }}");
        line!(out, "}}");
    }
}

const DEEP_CLASSES: &str = "
def untyped : ValueType<0, 99>; def Always : Predicate<\"\">;
class RegD<string n, int i> : Register<n> { let Namespace = \"Deep\"; let HWEncoding{7-0} = i; }
def EXEC : RegD<\"exec\", 126>; def MODE : RegD<\"mode\", 127>;
foreach i = 0...255 in { def VGPR#i : RegD<\"v\"#i, i>; }
foreach i = 0...105 in { def SGPR#i : RegD<\"s\"#i, i>; }
foreach w = [16, 32, 64] in { def VGPR_#w : RegisterClass<\"Deep\", [i32, f32], 32, (ops VGPR0, VGPR1)>; def SGPR_#w : RegisterClass<\"Deep\", [i32, f32], 32, (ops SGPR0)>; def VSrc_#w : Operand<i32>; }
def IntMods : Operand<i32>; def FPMods : Operand<i32>; def clamp : Operand<i1>; def omod : Operand<i1>; def dst_sel : Operand<i32>; def src_sel : Operand<i32>;
def bound_ctrl : Operand<i1>; def row_mask : Operand<i32>; def offset : Operand<i32>;
class isFloat<ValueType vt> { bit ret = !or(!eq(vt.Value, f16.Value), !eq(vt.Value, f32.Value), !eq(vt.Value, f64.Value)); }
class getDst<ValueType vt> { RegisterClass ret = !cond(!eq(vt.Size, 16): VGPR_16, !eq(vt.Size, 32): VGPR_32, true: VGPR_64); }
class getSrc<ValueType vt> { Operand ret = !if(!eq(vt.Size, 64), VSrc_64, !if(!eq(vt.Size, 16), VSrc_16, VSrc_32)); }
class getMod<ValueType vt> { Operand ret = !if(isFloat<vt>.ret, FPMods, IntMods); }
class getNumSrc<list<ValueType> a> { int ret = !foldl(-1, a, n, vt, !add(n, !if(!eq(vt.Value, untyped.Value), 0, 1))); }
class getIns32<RegisterClass r, Operand s0, int n> {
  dag ret = !cond(!eq(n, 1): (ins s0:$src0), !eq(n, 2): (ins s0:$src0, r:$src1), true: (ins s0:$src0, r:$src1, r:$src2));
}
class getIns64<Operand s0, Operand s1, Operand s2, Operand m0, Operand m1, int n, bit hasMods, bit hasOMod> {
  dag src0 = !if(hasMods, (ins m0:$src0_modifiers, s0:$src0), (ins s0:$src0));
  dag src1 = !if(!ge(n, 2), !if(hasMods, (ins m1:$src1_modifiers, s1:$src1), (ins s1:$src1)), (ins));
  dag src2 = !if(!ge(n, 3), (ins s2:$src2), (ins));
  dag tail = !con((ins clamp:$clamp), !if(hasOMod, (ins omod:$omod), (ins)));
  dag ret = !con(src0, src1, src2, tail);
}
class getAsm<int n, string pre, string post> {
  string ret = !interleave([\"$vdst\"] # !foreach(i, !range(0, n), \", \" # pre # \"$src\" # i # post), \"\");
}
class getPat<dag p, bit b> { list<dag> ret = !if(b, [p], []); }
class Profile<list<ValueType> args> {
  field list<ValueType> ArgVT = args; field bit Has64BitEncoding = 1;
  field ValueType DstVT = ArgVT[0]; field ValueType Src0VT = ArgVT[1]; field ValueType Src1VT = ArgVT[2]; field ValueType Src2VT = ArgVT[3];
  field RegisterClass DstRC = getDst<DstVT>.ret; field RegisterClass DstRC64 = DstRC; field Operand Src0RC32 = getSrc<Src0VT>.ret; field RegisterClass Src1RC32 = getDst<Src1VT>.ret;
  field Operand Src0RC64 = getSrc<Src0VT>.ret; field Operand Src1RC64 = getSrc<Src1VT>.ret; field Operand Src2RC64 = getSrc<Src2VT>.ret;
  field Operand Src0Mod = getMod<Src0VT>.ret; field Operand Src1Mod = getMod<Src1VT>.ret;
  field int NumSrc = getNumSrc<ArgVT>.ret; field bit HasDst = !ne(DstVT.Value, untyped.Value); field bit HasModifiers = !or(isFloat<Src0VT>.ret, isFloat<Src1VT>.ret);
  field bit HasOMod = !and(HasModifiers, isFloat<DstVT>.ret); field bit HasClamp = HasModifiers; field bit HasSDWA = !and(!ne(DstVT.Size, 64), !le(NumSrc, 2));
  field bit HasDPP = !and(!ne(Src0VT.Size, 64), !le(NumSrc, 2)); field bit IsPacked = 0; field bit HasOpSel = !eq(DstVT.Size, 16);
  field dag Outs = !if(HasDst, (outs DstRC:$vdst), (outs)); field dag Outs64 = Outs;
  field dag Ins32 = getIns32<Src1RC32, Src0RC32, NumSrc>.ret; field dag Ins64 = getIns64<Src0RC64, Src1RC64, Src2RC64, Src0Mod, Src1Mod, NumSrc, HasModifiers, HasOMod>.ret;
  field dag InsDPP = !con((ins DstRC:$old), Ins32, (ins row_mask:$row_mask, bound_ctrl:$bound_ctrl)); field dag InsSDWA = !con(Ins32, (ins dst_sel:$dst_sel, src_sel:$src0_sel));
  field string Asm32 = getAsm<NumSrc, \"\", \"\">.ret; field string Asm64 = getAsm<NumSrc, \"|\", \"|\">.ret # \"$clamp\" # !if(HasOMod, \"$omod\", \"\");
  field string AsmDPP = getAsm<NumSrc, \"\", \"\">.ret # \" $row_mask$bound_ctrl\"; field string AsmSDWA = getAsm<NumSrc, \"\", \"\">.ret # \" $dst_sel$src0_sel\"; field string TieRegDPP = \"$old\";
}
class DInst<dag outs, dag ins, string asm> : Instruction {
  let Namespace = \"Deep\"; let OutOperandList = outs; let InOperandList = ins; let AsmString = asm; let Size = 4;
  Predicate SubtargetPredicate = Always; Predicate OtherPredicate = Always; Predicate AssemblerPredicate = ?;
  field bit SALU = 0; field bit VALU = 0; field bit SOP1 = 0; field bit SOP2 = 0; field bit VOP1 = 0; field bit VOP2 = 0; field bit VOP3 = 0; field bit SDWA = 0; field bit DPP = 0;
  field bit MUBUF = 0; field bit MTBUF = 0; field bit DS = 0; field bit FLAT = 0; field bit VM_CNT = 0; field bit EXP_CNT = 0; field bit LGKM_CNT = 0; field bit WQM = 0;
  field bit Gather4 = 0; field bit ClampLo = 0; field bit ClampHi = 0; field bit FPDPRounding = 0; field bit FPAtomic = 0; field bit IsNeverUniform = 0; field bit IsDOT = 0;
  let TSFlags{20} = SALU; let TSFlags{21} = VALU; let TSFlags{22} = SOP1; let TSFlags{23} = SOP2; let TSFlags{24} = VOP1; let TSFlags{25} = VOP2; let TSFlags{26} = VOP3;
  let TSFlags{27} = SDWA; let TSFlags{28} = DPP; let TSFlags{29} = MUBUF; let TSFlags{30} = MTBUF; let TSFlags{31} = DS; let TSFlags{32} = FLAT; let TSFlags{33} = VM_CNT;
  let TSFlags{34} = EXP_CNT; let TSFlags{35} = LGKM_CNT; let TSFlags{36} = WQM; let TSFlags{37} = Gather4; let TSFlags{38} = ClampLo; let TSFlags{39} = ClampHi;
  list<Predicate> OtherPredicates = []; let Predicates = !listconcat(OtherPredicates, !if(!eq(SubtargetPredicate.CondString, \"\"), []<Predicate>, [SubtargetPredicate]));
}
class Enc32<bits<9> op, Profile P> { field bits<32> Inst; bits<8> vdst; bits<9> src0; bits<8> src1; let Inst{8-0} = !if(P.HasDst, src0, 0); let Inst{16-9} = src1; let Inst{24-17} = vdst; let Inst{31-25} = op{6-0}; }
class Enc64<bits<9> op, Profile P> {
  field bits<64> Inst; bits<8> vdst; bits<9> src0; bits<9> src1; bits<9> src2; bits<2> src0_modifiers; bits<2> src1_modifiers; bits<1> clamp; bits<2> omod;
  let Inst{7-0} = vdst; let Inst{8} = !if(P.HasModifiers, src0_modifiers{1}, 0); let Inst{9} = !if(P.HasModifiers, src1_modifiers{1}, 0); let Inst{15} = !if(P.HasClamp, clamp{0}, 0); let Inst{25-17} = op;
  let Inst{31-26} = 0x34; let Inst{40-32} = src0; let Inst{49-41} = src1; let Inst{58-50} = src2; let Inst{60-59} = !if(P.HasOMod, omod, 0); let Inst{61} = src0_modifiers{0}; let Inst{62} = src1_modifiers{0};
}
";

const DEEP_MULTICLASSES: &str = "
class Pseudo<string op, Profile P, dag outs, dag ins, string asm, list<dag> pattern> : LEVEL<outs, ins, asm, P> {
  let isPseudo = 1; let isCodeGenOnly = 1; let UseNamedOperandTable = 1; string Mnemonic = op; Profile Pfl = P; let Pattern = pattern; string PseudoInstr = op; bit HasDPP = P.HasDPP; let VALU = 1;
}
class Real<Pseudo ps, int gen> : LEVEL<ps.OutOperandList, ps.InOperandList, ps.Mnemonic # ps.AsmString, ps.Pfl> {
  let isPseudo = 0; let isCodeGenOnly = 0; let Constraints = ps.Constraints; let AsmVariantName = ps.AsmVariantName; let SchedRW = ps.SchedRW; let mayLoad = ps.mayLoad; let mayStore = ps.mayStore; let Uses = ps.Uses;
  let Defs = ps.Defs; let isConvergent = ps.isConvergent; let TSFlags = ps.TSFlags; int Subtarget = gen; string PseudoInstr = ps.PseudoInstr; let SubtargetPredicate = ps.SubtargetPredicate;
  let OtherPredicates = ps.OtherPredicates; let hasSideEffects = ps.hasSideEffects; let VALU = ps.VALU; let DecoderNamespace = \"GFX\" # gen;
}
class Pseudo32<string op, Profile P, list<dag> pat = []> : Pseudo<op, P, P.Outs, P.Ins32, P.Asm32, pat> { let VOP2 = 1; let AsmVariantName = \"Default\"; }
class Pseudo64<string op, Profile P, list<dag> pat = []> : Pseudo<op, P, P.Outs64, P.Ins64, P.Asm64, pat> { let VOP3 = 1; let Size = 8; let AsmVariantName = \"VOP3\"; }
class PseudoDPP<string op, Profile P> : Pseudo<op, P, P.Outs, P.InsDPP, P.AsmDPP, []> { let DPP = 1; let Constraints = P.TieRegDPP # \" = $vdst\"; let AsmVariantName = \"DPP\"; }
class PseudoSDWA<string op, Profile P> : Pseudo<op, P, P.Outs, P.InsSDWA, P.AsmSDWA, []> { let SDWA = 1; let AsmVariantName = \"SDWA\"; }
class Mapping<string name, bit e64 = 0> { string OpName = name; bit IsE64 = e64; string Family = !toupper(name); }
multiclass VOP_real_one<bits<9> op, int gen> {
  let AssemblerPredicate = !cast<Predicate>(\"Gen\" # gen) in {
    def _e32_gfx#gen : Real<!cast<Pseudo>(NAME#\"_e32\"), gen>, Enc32<op, !cast<Pseudo>(NAME#\"_e32\").Pfl>;
    def _e64_gfx#gen : Real<!cast<Pseudo>(NAME#\"_e64\"), gen>, Enc64<op, !cast<Pseudo>(NAME#\"_e64\").Pfl>;
  }
  if !cast<Pseudo>(NAME#\"_e32\").Pfl.HasDPP then {
    let OtherPredicates = [!cast<Predicate>(\"Gen\" # gen), Gen8] in
    def _dpp_gfx#gen : Real<!cast<Pseudo>(NAME#\"_dpp\"), gen>, Enc64<op, !cast<Pseudo>(NAME#\"_dpp\").Pfl>;
  }
}
multiclass VOP_real_range<bits<9> op, list<int> gens> { foreach gen = gens in { defm NAME : VOP_real_one<op, gen>; } }
multiclass VOP_real_all<bits<9> op> { defm NAME : VOP_real_range<op, [6, 7, 8, 9]>; defm NAME : VOP_real_range<!add(op, 1), [10, 11, 12]>; }
multiclass VOP_sdwa<string op, Profile P> { if P.HasSDWA then def _sdwa : PseudoSDWA<op, P>, Mapping<op>; }
multiclass VOP_dpp<string op, Profile P> { if P.HasDPP then def _dpp : PseudoDPP<op, P>, Mapping<op>; }
multiclass VOP_pseudo<string op, Profile P, SDNode n> {
  def _e32 : Pseudo32<op, P>, Mapping<op>;
  def _e64 : Pseudo64<op, P, getPat<(set P.DstVT:$vdst, (n P.Src0VT:$src0, P.Src1VT:$src1)), !eq(P.NumSrc, 2)>.ret>, Mapping<op, 1>;
  defm NAME : VOP_sdwa<op, P>; defm NAME : VOP_dpp<op, P>;
}
multiclass VOP_all<string str, Profile P, SDNode n> { let VALU = 1 in defm NAME : VOP_pseudo<str, P, n>; }
class BufPseudo<string op, Profile P, int addr, bit tfe> : Pseudo<op, P, (outs P.DstRC:$vdata), !con((ins), !if(!eq(addr, 0), (ins), (ins VGPR_32:$vaddr)), (ins offset:$offset)), \" $vdata\" # !if(tfe, \" tfe\", \"\"), []> { let MUBUF = 1; let VM_CNT = 1; let EXP_CNT = 1; int Addr = addr; bit Tfe = tfe; }
multiclass BUF_one<string op, Profile P, int addr, bit tfe> { defvar sfx = !if(tfe, \"_TFE\", \"\") # \"_A\" # addr; def sfx : BufPseudo<op, P, addr, tfe>, Mapping<op>; foreach gen = [6, 10, 11] in def sfx#_gfx#gen : Real<!cast<Pseudo>(NAME#sfx), gen>, Enc64<addr, P>; }
multiclass BUF_addr<string op, Profile P, bit tfe> { foreach addr = 0...4 in defm NAME : BUF_one<op, P, addr, tfe>; }
multiclass BUF_all<string op, Profile P> { defm NAME : BUF_addr<op, P, 0>; let isAsCheapAsAMove = 1 in defm NAME : BUF_addr<op#\"_tfe\", P, 1>; }
";
