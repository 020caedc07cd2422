//===- NaplesPURegisterInfo.td - the two register files --------------------===//
//
// docs/machine/registers.md. A register field always has six bits; the instruction format
// determines whether it names a scalar or a vector register.
//
//===----------------------------------------------------------------------===//

foreach n = 0...57 in
  def S#n : Register<"s"#n, n, n>;

// The hardware neither reads nor writes this register; the compiler leaves the trap code there.
def TR_REG : Register<"tr", 58, 58> { let Role = "trap"; }
// Lane mask: bit i enables lane i; bits 31:16 have no effect.
def MR_REG : Register<"rm", 59, 59> { let Role = "mask"; }
def FP_REG : Register<"fp", 60, 60> { let Role = "frame-pointer"; }
def SP_REG : Register<"sp", 61, 61> { let Role = "stack-pointer"; }
def RA_REG : Register<"ra", 62, 62> { let Role = "return-address"; }
// As a source: the address of the reading instruction itself.
def PC_REG : Register<"pc", 63, 63> {
  let Role = "program-counter";
  let isConstantPerInstruction = true;
}

foreach n = 0...63 in
  def V#n : Register<"v"#n, n, !add(n, 64)>;

class SRegs<int first, int last> {
  list<Register> L = !foreach(n, !range(first, !add(last, 1)), !cast<Register>("S"#n));
}

class VRegs<int first, int last> {
  list<Register> L = !foreach(n, !range(first, !add(last, 1)), !cast<Register>("V"#n));
}

// i8 and i16 are held here with undefined upper bits.
// Caller-saved registers come first: a callee-saved register costs a save.
def GPR32 : RegisterClass<"s", [i32, f32, i16, i8], 4, 4,
    !listconcat(SRegs<0, 57>.L, [TR_REG, MR_REG, FP_REG, SP_REG, RA_REG, PC_REG])> {
  let IsleConst = "const_gpr";
  let AllocationOrder = !listconcat(SRegs<0, 49>.L, SRegs<50, 57>.L);
  let Reserved = [TR_REG, MR_REG, FP_REG, SP_REG, RA_REG, PC_REG];
}

// v59 is reserved because a write to it replaces the lane mask (erratum
// vector_write_to_59), v63 because a register-register result in it is taken for a
// jump (erratum vector_result_in_63).
def VR512W : RegisterClass<"v", [v16i32, v16f32, v16i8, v16i16], 64, 64, VRegs<0, 63>.L> {
  let AllocationOrder = !listconcat(VRegs<0, 55>.L, VRegs<56, 58>.L, VRegs<60, 62>.L);
  let Reserved = [V59, V63];
}
