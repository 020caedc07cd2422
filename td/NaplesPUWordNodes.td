//===- NaplesPUWordNodes.td - operations on words that may be constants -------===//
//
// Integers and floats of several words are computed word by word (isle/words.isle,
// isle/wide_*.isle). A word is a register, or a constant that is not in a register yet. Each
// operation on words is a node, with a pattern for each form: two registers, register and immediate,
// and cases that need no instruction because of a constant. So zero extension costs nothing.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

// A scalar, possibly a constant.
def word : RegOperand<GPR32, "Word"> {
  let IsleConst = "const_word";
  let IsleMatch = "word_const";
}
def word_simm9 : OperandLeaf<word, simm9, "word_simm9">;
// Any constant; for a power of two its logarithm, and 32 minus the logarithm.
def any_const  : OperandLeaf<word, word, "any_const">;
// A constant, sign-extended from sixteen bits.
def const_sext16 : OperandLeaf<word, word, "const_sext16">;
def log2       : OperandLeaf<word, word, "word_log2"> { let Complexity = 6; }
def log2_back  : OperandLeaf<word, word, "word_log2_back"> { let Complexity = 6; }

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

// `folded` computes the operation on constants.
class WordNode<DAGOperand kind, Instruction folded, list<SDNodeProperty> props = []>
    : TargetNode<(outs kind), (ins kind:$a, kind:$b), props> {
  let FoldedBy = folded;
  let Fold = "fold_word";
}

multiclass WordForms<TargetNode op, string inst> {
  def : Pat<(op word:$a, word:$b), (!cast<Instruction>(inst#"SSS_32") $a, $b)>;
  def : Pat<(op word:$a, word_simm9:$b), (!cast<Instruction>(inst#"SSI") $a, $b)>;
}
def word_add   : WordNode<word, ADDSSS_32, [SDNPCommutative]>;
def word_sub   : WordNode<word, SUBSSS_32>;
def word_and   : WordNode<word, ANDSSS_32, [SDNPCommutative]>;
def word_or    : WordNode<word, ORSSS_32, [SDNPCommutative]>;
def word_xor   : WordNode<word, XORSSS_32, [SDNPCommutative]>;
def word_mul   : WordNode<word, MULLSSS_32, [SDNPCommutative]>;
def word_mulhu : WordNode<word, MULHUSSS_32, [SDNPCommutative]>;
def word_shl   : WordNode<word, SLLSSS_32>;
def word_srl   : WordNode<word, SRLSSS_32>;
def word_sra   : WordNode<word, SRASSS_32>;

defm : WordForms<word_add, "ADD">;
defm : WordForms<word_sub, "SUB">;
defm : WordForms<word_and, "AND">;
defm : WordForms<word_or, "OR">;
defm : WordForms<word_xor, "XOR">;
defm : WordForms<word_mul, "MULL">;
defm : WordForms<word_mulhu, "MULHU">;
defm : WordForms<word_shl, "SLL">;
defm : WordForms<word_srl, "SRL">;
defm : WordForms<word_sra, "SRA">;

// The high word of the product of two sign-extended numbers, which are in registers.
def word_mulhs : TargetNode<(outs word), (ins word:$a, word:$b)>;
def : Pat<(word_mulhs word:$a, word:$b), (MULHSSS_32 $a, $b)>;

// Compares return 1 or 0.
def word_seteq  : WordNode<word, SEQSISSS_32, [SDNPCommutative]>;
def word_setne  : WordNode<word, SNESISSS_32>;
def word_setge  : WordNode<word, SGESISSS_32>;
def word_setlt  : WordNode<word, SLTSISSS_32>;
def word_setle  : WordNode<word, SLESISSS_32>;
def word_setugt : WordNode<word, SGTUISSS_32>;
def word_setult : WordNode<word, SLTUISSS_32>;
def word_setule : TargetNode<(outs word), (ins word:$a, word:$b)>;

defm : WordForms<word_seteq, "SEQSI">;
defm : WordForms<word_setlt, "SLTSI">;
defm : WordForms<word_setle, "SLESI">;
defm : WordForms<word_setugt, "SGTUI">;
defm : WordForms<word_setult, "SLTUI">;
// These have only the operands that rules give them.
def : Pat<(word_setne word:$a, word_simm9:$b), (SNESISSI $a, $b)>;
def : Pat<(word_setge word:$a, word:$b), (SGESISSS_32 $a, $b)>;
def : Pat<(word_setule word:$a, word:$b), (SLEUISSS_32 $a, $b)>;

//===----------------------------------------------------------------------===//
// Operations that need no instruction, or a cheaper one
//===----------------------------------------------------------------------===//

foreach op = ["add", "sub", "or", "xor", "shl", "srl", "sra"] in
  def : Pat<(!cast<TargetNode>("word_"#op) word:$a, 0), (COPY $a)>;
def : Pat<(word_and word:$a, -1), (COPY $a)>;
foreach op = ["and", "mul", "mulhu"] in
  def : Pat<(!cast<TargetNode>("word_"#op) word:$a, 0), (COPY 0)>;
def : Pat<(word_mulhu word:$a, 1), (COPY 0)> { let AddedComplexity = 2; }
def : Pat<(word_or word:$a, -1), (COPY -1)>;
foreach op = ["sub", "xor", "setult"] in
  def : Pat<(!cast<TargetNode>("word_"#op) word:$a, word:$a), (COPY 0)> { let AddedComplexity = 8; }

// No unsigned number is below 0, and 0 is below all others.
def : Pat<(word_setult word:$a, 0), (COPY 0)> { let AddedComplexity = 1; }
def : Pat<(word_setult 0, word:$b), (word_setne $b, 0)>;

// A product with a power of two is a shift, which needs no register for its amount.
def : Pat<(word_mul word:$a, log2:$n), (word_shl $a, $n)>;
def : Pat<(word_mulhu word:$a, log2_back:$n), (word_srl $a, $n)>;

//===----------------------------------------------------------------------===//
// Shifts by the whole amount, which CLIF takes modulo the width: 0 for 32 and more, on every
// machine
//===----------------------------------------------------------------------===//

// A constant below 32.
def word_amount : OperandLeaf<word, simm9, "word_amount">;

multiclass WholeShift<string inst> {
  def "" : TargetNode<(outs word), (ins word:$a, word:$n)>;
  def : Pat<(!cast<TargetNode>(NAME) word:$a, word_amount:$n), (!cast<Instruction>(inst#"SSI") $a, $n)>;
  def : Pat<(!cast<TargetNode>(NAME) word:$a, word:$n), (!cast<Instruction>(inst#"SSS_32") $a, $n)>;
  let Predicates = [ShiftsAreModulo], AddedComplexity = 1 in
  def : Pat<(!cast<TargetNode>(NAME) word:$a, word:$n),
            (seq (!cast<Instruction>(inst#"SSS_32") $a, $n):$shifted,
                 (word_and $shifted, (word_sub 0, (word_setult $n, 32))))>;
}
defm word_whole_shl : WholeShift<"SLL">;
defm word_whole_srl : WholeShift<"SRL">;

//===----------------------------------------------------------------------===//
// Operations on one word
//===----------------------------------------------------------------------===//

class WordUnary : TargetNode<(outs word), (ins word:$a)>;

// Leading and trailing zeros; 32 if the word is 0.
def word_clz : WordUnary;
def : Pat<(word_clz word:$a), (CLZSS_32 $a)>;
def word_ctz : WordUnary;
def : Pat<(word_ctz word:$a), (CTZSS_32 $a)>;

// Sign-extends the number in the low bits.
def word_sext8  : WordUnary;
def : Pat<(word_sext8 word:$a), (SEXT8_32SS $a)>;
def word_sext16 : WordUnary;
def : Pat<(word_sext16 const_sext16:$a), (COPY $a)>;
def : Pat<(word_sext16 word:$a), (SEXT16_32SS $a)>;

// Converts a number of less than 32 bits to a float.
def word_sint_to_fp : WordUnary;
def : Pat<(word_sint_to_fp word:$a), (I32TOF32_SS $a)>;

def word_bswap  : WordUnary;
def : Pat<(word_bswap word:$a), (SWAP_BYTES $a)>;
def word_bitrev : WordUnary;
def : Pat<(word_bitrev word:$a), (SWAP_BYTES (REVERSE_IN_BYTES $a))>;
def word_popcnt : WordUnary;
def : Pat<(word_popcnt word:$a), (ONES $a)>;

//===----------------------------------------------------------------------===//
// Memory: one access to an aligned address, in the machine's byte order
//===----------------------------------------------------------------------===//

class WordLoad : TargetNode<(outs word), (ins MEMri:$addr)>;
def word_load   : WordLoad;
def word_load8  : WordLoad;
def word_load16 : WordLoad;
def : Pat<(word_load MEMri:$addr), (L32W_Mainmem $addr)>;
def : Pat<(word_load8 MEMri:$addr), (L32BU_Mainmem $addr)>;
def : Pat<(word_load16 MEMri:$addr), (L32SU_Mainmem $addr)>;

class WordStore : TargetNode<(outs), (ins word:$value, MEMri:$addr)>;
def word_store   : WordStore;
def word_store8  : WordStore;
def word_store16 : WordStore;
def : Pat<(word_store word:$value, MEMri:$addr), (S32W_Mainmem $value, $addr)>;
def : Pat<(word_store8 word:$value, MEMri:$addr), (S32B_Mainmem $value, $addr)>;
def : Pat<(word_store16 word:$value, MEMri:$addr), (S32S_Mainmem $value, $addr)>;
