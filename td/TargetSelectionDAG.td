//===- TargetSelectionDAG.td - the classes selection patterns are made of ----===//
//
// A pattern is turned into an ISLE rule. Where LLVM has C++ fragments, these
// records name terms of the ISLE prelude.
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

// Types that one pattern matches alike. `extractor` is an ISLE extractor on Type; empty
// means that nothing has to be checked.
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
def SDTIntExtendOp : SDTypeProfile<1, 1, [SDTCisInt<0>, SDTCisInt<1>]>;
// Operands are the two numbers and the condition.
def SDTSetCC      : SDTypeProfile<1, 3, [SDTCisVT<0, i8>, SDTCisSameAs<1, 2>, SDTCisInt<1>]>;
// Any type, the same everywhere: the pattern says which.
def SDTBinOp      : SDTypeProfile<1, 2, [SDTCisSameAs<0, 1>, SDTCisSameAs<0, 2>]>;
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

// A leaf that matches a constant. `extractor` is an ISLE extractor on Value that yields what the
// operand class `encodes` encodes.
class ImmLeaf<Operand encodes, string extractor> {
  Operand Encodes = encodes;
  string Extractor = extractor;
}

// A leaf that matches an address. `selectFunc` is a partial ISLE constructor of flags, pointer, offset
// and alignment; it makes what `encodes` encodes, or fails if the address is not of this kind.
class ComplexPattern<Operand encodes, int numOperands, string selectFunc, int align> {
  Operand Encodes = encodes;
  int NumOperands = numOperands;
  string SelectFunc = selectFunc;
  int Alignment = align; // bytes
}

// Something that holds for the whole compilation or not: a partial ISLE constructor without arguments.
class Predicate<string isle> {
  string IsleName = isle;
}

// A pattern and the instructions that compute the same. Among patterns that match the more complex one
// wins; AddedComplexity decides where the complexity is the same.
class Pat<dag pattern, dag result> {
  dag PatternToMatch = pattern;
  dag ResultInstr = result;
  int AddedComplexity = 0;
  list<Predicate> Predicates = []; // all have to hold
}
