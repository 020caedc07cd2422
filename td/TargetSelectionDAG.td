//===- TargetSelectionDAG.td - the classes selection patterns are made of ----===//
//
// A pattern is turned into an ISLE rule. Where LLVM has C++ fragments, these
// records name terms of the ISLE prelude.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

// Types that one pattern matches alike. `extractor` is an ISLE extractor on Type, which asks
// for this list; empty means that nothing has to be checked.
class TypeSet<list<ValueType> types, string extractor> {
  list<ValueType> Types = types;
  string Extractor = extractor;
  // Only the low 32 bits of the value are used, so its other registers do not matter.
  bit LowWordOnly = false;
}

// What an SDNode says about its result (index 0) and operands (1, 2, ...); without
// a result the operands start at 0.
class SDTypeConstraint<int opnum> {
  int OperandNum = opnum;
}
class SDTCisInt<int opnum> : SDTypeConstraint<opnum>;
class SDTCisVT<int opnum, ValueType vt> : SDTypeConstraint<opnum> {
  ValueType VT = vt;
}
class SDTCisSameAs<int opnum, int other> : SDTypeConstraint<opnum> {
  int OtherOperandNum = other;
}

class SDTypeProfile<int numresults, int numoperands, list<SDTypeConstraint> constraints> {
  int NumResults = numresults;
  int NumOperands = numoperands;
  list<SDTypeConstraint> Constraints = constraints;
}

def SDTIntUnaryOp : SDTypeProfile<1, 1, [SDTCisSameAs<0, 1>, SDTCisInt<0>]>;
def SDTIntBinOp   : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>, SDTCisInt<0>]>;
def SDTIntShiftOp : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisInt<0>, SDTCisInt<2>]>;
// Results are the number and whether it overflows.
def SDTOverflowOp : SDTypeProfile<2, 2, [SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>, SDTCisInt<0>, SDTCisVT<1, i8>]>;
// The same with a carry or borrow coming in.
def SDTCarryOp    : SDTypeProfile<2, 3, [SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>, SDTCisInt<0>, SDTCisVT<1, i8>,
                                         SDTCisVT<4, i8>]>;
def SDTSplitOp    : SDTypeProfile<2, 1, [SDTCisSameAs<0, 1>, SDTCisInt<0>, SDTCisInt<2>]>;
def SDTPairOp     : SDTypeProfile<1, 2, [SDTCisInt<0>, SDTCisSameAs<1, 2>, SDTCisInt<1>]>;
def SDTIntExtendOp : SDTypeProfile<1, 1, [SDTCisInt<0>, SDTCisInt<1>]>;
// Operands are the two numbers and the condition.
def SDTSetCC      : SDTypeProfile<1, 3, [SDTCisVT<0, i8>, SDTCisSameAs<1, 2>, SDTCisInt<1>]>;
// The same of floats.
def SDTFSetCC     : SDTypeProfile<1, 3, [SDTCisVT<0, i8>, SDTCisSameAs<1, 2>]>;
// Between integers and floats.
def SDTConvert    : SDTypeProfile<1, 1, []>;
// Any type, the same everywhere: the pattern says which.
def SDTBinOp      : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>]>;
def SDTTernaryOp  : SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>]>;
// The last operand is a reason.
def SDTTrapOp     : SDTypeProfile<1, 3, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>, SDTCisInt<0>]>;
// The condition has a type of its own.
def SDTSelect     : SDTypeProfile<1, 3, [SDTCisSameAs<0, 2>, SDTCisSameAs<0, 3>]>;
def SDTUnaryOp    : SDTypeProfile<1, 1, [SDTCisSameAs<0, 1>]>;
def SDTBitcast    : SDTypeProfile<1, 1, []>;
// Nothing but effects.
def SDTNone       : SDTypeProfile<0, 0, []>;
def SDTUse        : SDTypeProfile<0, 1, []>;
def SDTUse2       : SDTypeProfile<0, 2, []>;
// A value from nowhere: of no operand, or of what the instruction carries.
def SDTLeaf       : SDTypeProfile<1, 0, []>;
def SDTLeaf1      : SDTypeProfile<1, 1, []>;
def SDTLeaf2      : SDTypeProfile<1, 2, []>;
def SDTLoad       : SDTypeProfile<1, 1, []>;
def SDTStore      : SDTypeProfile<0, 2, []>;

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

class SDNodeProperty;
def SDNPCommutative : SDNodeProperty;
// The node accesses memory: its form binds `flags`, `p` and `offset`, and its last
// operand is a ComplexPattern, which looks at these.
def SDNPMemOperand  : SDNodeProperty;

// A CLIF instruction. `form` is how ISLE matches it: `$ty` stands for the type of the result, `$0`,
// `$1`, ... for operands.
class SDNode<string form, SDTypeProfile profile, list<SDNodeProperty> props = []> {
  string IsleForm = form;
  SDTypeProfile TypeProfile = profile;
  list<SDNodeProperty> Properties = props;
}

// A fixed argument of a node, given as ISLE text.
class CondCode<string isle> {
  string IsleName = isle;
}

// Placeholder of a PatFrag's operands.
def node;
// (set GPR32:$dst, pattern) in an instruction's Pattern list.
def set;

// An abbreviation: the operator stands for the fragment with its operands put in.
class PatFrag<dag operandList, dag frag> {
  dag Operands = operandList;
  dag Fragment = frag;
}
// The operator stands for each of the fragments in turn: a pattern that uses it is as many patterns.
class PatFrags<dag operandList, list<dag> frags> {
  dag Operands = operandList;
  list<dag> Fragments = frags;
}

//===----------------------------------------------------------------------===//
// Leaves, beside register classes and types
//===----------------------------------------------------------------------===//

// A constant. `extractor` is an ISLE extractor on Value that yields what the operand class `encodes` encodes.
class ImmLeaf<DAGOperand encodes, string extractor> {
  DAGOperand Encodes = encodes;
  string Extractor = extractor;
}

// A value in a register of which more is known than its type. `extractor` is an ISLE extractor from Value to Value.
class PatLeaf<TypeSet types, string extractor> {
  TypeSet Types = types;
  string Extractor = extractor;
}

// A value that becomes the operand `encodes` by an ISLE constructor, which the rules with this pattern as their root (SelectPat)
// and hand-written ones define. So what a value needs before an instruction can use it is said once. In a result it
// is an operator on a leaf.
class ComplexPattern<TypeSet types, DAGOperand encodes, string selectFunc> {
  TypeSet Types = types;
  DAGOperand Encodes = encodes;
  string SelectFunc = selectFunc;
}

// An address. `predicate` is a pure partial ISLE constructor of flags, pointer, offset and alignment and tells whether an
// access is of this kind (empty: any is); `selectFunc`, of pointer and offset, makes what `encodes` encodes.
class AddrPattern<DAGOperand encodes, int numOperands, string predicate, string selectFunc, int align> {
  DAGOperand Encodes = encodes;
  int NumOperands = numOperands;
  string Predicate = predicate;
  string SelectFunc = selectFunc;
  int Alignment = align; // bytes
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

// (seq a:$x, b, c) makes the instructions in this order; later ones use `$x`. The last one is the result.
def seq;
// (results a, b) at the end: the results of a node with several.
def results;
// (COPY $x): the operand itself, no instruction.
def COPY;

// An operand that only pseudo-instructions have, with its ISLE type.
class PseudoOperand<string isleType> : DAGOperand {
  string IsleType = isleType;
}
// One that a CLIF instruction carries beside its values: a leaf of this class takes what stands there.
class ClifOperand<string isleType> : PseudoOperand<isleType>;

// One that is in a register of this class, or will be once an instruction wants it there: until then it can be a constant, or a
// scalar that stands for all lanes. `IsleMatch` is the ISLE extractor for a number in the pattern of a target's node.
class RegOperand<RegisterClass regs, string isleType> : PseudoOperand<isleType> {
  RegisterClass RegClass = regs;
  string IsleMatch = "";
  // What a pattern binds is one of these until an instruction wants it in a register.
  bit HoldsValues = false;
}
// The lanes that a masked instruction works on. Its first operand in results; it is in this register while the instruction runs.
class MaskOperand<RegisterClass regs, Register mask, string isleType> : RegOperand<regs, isleType> {
  Register Mask = mask;
  string Shape = "k";
}

// What the compiler makes as one and turns into machine instructions once registers, frame and labels are known. It has no bits of
// its own, so it is not an Instruction. `isle` is its constructor, which the compiler supplies.
class PseudoInst<dag outs, dag ins, string isle> {
  dag OutOperandList = outs;
  dag InOperandList = ins;
  string IsleName = isle;
  bit isPseudo = true;
  // The constructor can refuse, and with it the rule.
  bit mayRefuse = false;
}

// A node of the target, between CLIF and instructions. Results use it where the form of an instruction depends on its operands;
// patterns that start with it say which form that is. The operands of such a pattern are those of the node, leaves that look into
// them (OperandLeaf), numbers and types.
class TargetNode<dag outs, dag ins, list<SDNodeProperty> props = []> {
  dag OutOperandList = outs;
  dag InOperandList = ins;
  // SDNPCommutative: the first two neighbours of the same kind can be exchanged.
  list<SDNodeProperty> Properties = props;
  // Computes the same of constants. `Fold` is a pure partial ISLE constructor of this opcode and the constants.
  Instruction FoldedBy = ?;
  string Fold = "";
}

// An operand of a target's node of which more is known: `extractor` is an ISLE extractor from `of` to `encodes`.
class OperandLeaf<DAGOperand of, DAGOperand encodes, string extractor> {
  DAGOperand Of = of;
  DAGOperand Encodes = encodes;
  string Extractor = extractor;
  int Complexity = 4;
}

// Several instructions under one name, for results. `isle` is the name of the ISLE term.
class OutPatFrag<dag outs, dag ins, string isle, dag result> {
  dag OutOperandList = outs;
  dag InOperandList = ins;
  string IsleName = isle;
  dag ResultInstr = result;
}

// Makes an operand from others, from types (`$ty` of `(int32:$ty ...)`), from constants and from numbers, by a pure ISLE
// constructor. A leaf is given as the value it matched.
class SDNodeXForm<DAGOperand encodes, int numOperands, string isle> {
  DAGOperand Encodes = encodes;
  int NumOperands = numOperands;
  string IsleName = isle;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

// Something that holds or not: a pure partial ISLE constructor without arguments.
class Predicate<string isle> {
  string IsleName = isle;
}
// The same, of the CLIF instruction at hand.
class InstPredicate<string isle> : Predicate<isle>;

// The same, of two operands of the pattern, given by their names.
class OperandPredicate<string isle, list<string> operands> : Predicate<isle> {
  list<string> Operands = operands;
}

// A pattern and the instructions that compute the same. Among patterns that match the more complex one
// wins; AddedComplexity decides where the complexity is the same.
class Pat<dag pattern, dag result> {
  dag PatternToMatch = pattern;
  dag ResultInstr = result;
  int AddedComplexity = 0;
  list<Predicate> Predicates = []; // all have to hold
}

// A rule of a ComplexPattern's SelectFunc. The pattern may be a leaf with its type.
class SelectPat<ComplexPattern root, dag pattern, dag result> : Pat<pattern, result> {
  ComplexPattern Root = root;
}
