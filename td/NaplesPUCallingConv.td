//===- NaplesPUCallingConv.td - where arguments and results live ------------===//
//
// docs/abi.md.
//
//===----------------------------------------------------------------------===//

// Words of a split value are placed one by one: the low word may be in s7 and the
// high one on the stack.
//
// A vector of 2, 4 or 8 lanes of i8, i16, i32 or f32, among them those of 128 bits, is
// the vector of sixteen such lanes with these as its first ones; what the others hold
// means nothing, in registers and on the stack. All other vectors are their lanes.
def CC_NaplesPU : CallingConv<[
  CCIfType<[i8, i16], CCPromoteToType<i32>>,
  CCIfType<[i64, f64], CCSplitToType<i32, 2>>,
  CCIfType<[i128], CCSplitToType<i32, 4>>,
  CCIfType<[v16i8, v16i16], CCPromoteToType<v16i32>>,
  CCIfType<[i32, f32], CCAssignToReg<SRegs<0, 7>.L>>,
  CCIfType<[v16i32, v16f32], CCAssignToReg<VRegs<0, 7>.L>>,
  CCIfType<[i32, f32], CCAssignToStack<4, 4>>,
  CCIfType<[v16i32, v16f32], CCAssignToStack<64, 64>>
]>;

// A value that gets no place here is returned through memory.
def RetCC_NaplesPU : CallingConv<[
  CCIfType<[i8, i16], CCPromoteToType<i32>>,
  CCIfType<[i64, f64], CCSplitToType<i32, 2>>,
  CCIfType<[i128], CCSplitToType<i32, 4>>,
  CCIfType<[v16i8, v16i16], CCPromoteToType<v16i32>>,
  CCIfType<[i32, f32], CCAssignToReg<SRegs<0, 5>.L>>,
  CCIfType<[v16i32, v16f32], CCAssignToReg<VRegs<0, 5>.L>>
]>;

// The order of docs/machine/registers.md without what is never allocated and so never changed
// (v59, v63) and without rm, which is all ones at every function boundary.
def NaplesPUCSR : CalleeSavedRegs<
  !listconcat(SRegs<50, 57>.L, [FP_REG, RA_REG], VRegs<56, 58>.L, VRegs<60, 62>.L)>;
