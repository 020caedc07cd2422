include "machine.inc"

// Operations whose meaning has a fault, each with an instruction. They have numbers of the M format, which has
// enough of them free.
class Statements<bits<6> number, list<dag> statements> : HwOp<FrmMEM, number, "op" # number, UnitINT, 7> {
  let Does = statements;
}
multiclass Faulty<bits<6> number, dag result> {
  def _OP : Statements<number, [(do_set result)]>;
  def "" : InstRR2<!cast<HwOp>(NAME # "_OP"), 0, 0, 0, 0, (outs GPR32:$dst),
                   (ins GPR32:$src0, GPR32:$src1), "op" # number # " $dst, $src0, $src1">;
}
def foo;

defm UNKNOWN   : Faulty<21, (foo $a, $b)>;
defm ARITY     : Faulty<22, (bv_add $a)>;
defm FEW       : Faulty<23, (fp_add $a)>;
defm WIDTHS    : Faulty<24, (bv_add $a, (bv_zext 64, $b))>;
defm NARROW    : Faulty<25, (bv_extract $a, 15, 0)>;
defm NAME      : Faulty<26, (bv_not $c)>;
defm BITS      : Faulty<27, (bv_extract $a, 32, 1)>;
defm SHRINKS   : Faulty<28, (bv_zext 16, $a)>;
defm NUMBER    : Faulty<29, (bv_zext 32, 3)>;
defm TOO_BIG   : Faulty<30, (bv_zext 32, (bv_const 4, 16))>;
defm CONDITION : Faulty<31, (bv_select $a, $a, $b)>;
defm ERRATUM   : Faulty<43, (bv_erratum "no_such_erratum", $a, $b)>;
defm OPERAND   : Faulty<44, (bv_reg $src2)>;
defm NOT_IMM   : Faulty<45, (bv_imm $src0)>;
defm REGISTER  : Faulty<46, (bv_register V0)>;
defm MEMORY    : Faulty<47, (bv_load "here", 4, $a)>;
defm WIDE      : Faulty<48, (bv_extract (bv_lanes (bv_zext 33, $a)), 31, 0)>;
defm TEXT      : Faulty<49, (bv_not "text")>;
defm STATEMENT : Faulty<50, (do_jump $a)>;

// Statements.
class Scalar<HwOp op> : InstRR2<op, 0, 0, 0, 0, (outs GPR32:$dst), (ins GPR32:$src0, GPR32:$src1),
                                op.Name # " $dst, $src0, $src1">;
class Vector<HwOp op, bit fd, dag outs> : InstRR2<op, fd, 1, 1, 0, outs, (ins VR512W:$src0, VR512W:$src1),
                                                  op.Name # " $dst, $src0, $src1">;
def NO_STATEMENT_OP : Statements<53, [(bv_not $a)]>;
def NO_STATEMENT : Scalar<NO_STATEMENT_OP>;
def REASON_OP : Statements<54, [(do_trap_if CACHE_LINE, (bv_eq $a, 0))]>;
def REASON : Scalar<REASON_OP>;
def TEST_OP : Statements<55, [(do_branch $a, $b)]>;
def TEST : Scalar<TEST_OP>;
def STORED_OP : Statements<56, [(do_store MainMemory, 2, $a, $b)]>;
def STORED : Scalar<STORED_OP>;
def ONE_RESULT_OP : Statements<57, [(do_set (bv_add $a, $b))]>;
def ONE_RESULT : Vector<ONE_RESULT_OP, 0, (outs GPR32:$dst)>;
def ONE_JUMP_OP : Statements<58, [(do_jump $a)]>;
def ONE_JUMP : Vector<ONE_JUMP_OP, 1, (outs VR512W:$dst)>;
def INSIDE_OP : Statements<59, [(do_each_lane (do_each_lane (do_nothing)))]>;
def INSIDE : Scalar<INSIDE_OP>;
def EMPTY_TRAP_OP : Statements<60, [(do_trap_if TRAP_NONE)]>;
def EMPTY_TRAP : Scalar<EMPTY_TRAP_OP>;

// No meaning at all.
def SILENT_OP : HwOp<FrmMEM, 61, "silent", UnitINT, 7>;
def SILENT : Scalar<SILENT_OP>;
def NO_OP : NaplesPUInst<FrmNOP, (outs), (ins), "nop"> {
  let Inst = 0xFFFFFFFF;
}

// A result without a register.
def NOWHERE_OP : HwOp<FrmCTR, 6, "nowhere", UnitCTL, 0> {
  let Does = [(do_set (bv_pc))];
}
def NOWHERE : InstCTR<NOWHERE_OP, (outs), (ins GPR32:$src0), "nowhere $src0"> {
  let Inst{17-12} = 0;
  let Output = ?;
}

// Meanings that take no end.
class Nested<int depth> {
  dag Value = !foldl((bv_copy $a), !range(0, depth), value, n, (bv_not value));
}
class Doubled<int times> {
  dag Value = !foldl((bv_copy $a), !range(0, times), value, n, (bv_add value, value));
}
defm DEEP   : Faulty<51, Nested<1000>.Value>;
defm SHARED : Faulty<52, (bv_extract Doubled<60>.Value, 15, 0)>;

def bv_again : BvUnary<"Not", "~", "Has the name of another one.">;
def fp_none : FloatFunction<"None", 0, "fnone", "Without operands.">;
