//===- NaplesPUCallingConv.td - where arguments and results live ------------===//
//
// docs/abi.md.
//
//===----------------------------------------------------------------------===//

// The words of a split value are assigned one by one: the low word may be in s7 and the high word
// on the stack.
//
// A vector of 2, 4 or 8 lanes of i8, i16, i32 or f32 (this includes the 128-bit vectors of these
// types) is passed as a vector of sixteen such lanes. Its lanes are the first ones; the other lanes
// are undefined, in registers and on the stack. Every other vector is passed as its lanes, one by
// one.
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

// A value without a location here is returned through memory.
def RetCC_NaplesPU : CallingConv<[
  CCIfType<[i8, i16], CCPromoteToType<i32>>,
  CCIfType<[i64, f64], CCSplitToType<i32, 2>>,
  CCIfType<[i128], CCSplitToType<i32, 4>>,
  CCIfType<[v16i8, v16i16], CCPromoteToType<v16i32>>,
  CCIfType<[i32, f32], CCAssignToReg<SRegs<0, 5>.L>>,
  CCIfType<[v16i32, v16f32], CCAssignToReg<VRegs<0, 5>.L>>
]>;

// In the order of docs/machine/registers.md, without the registers that are never allocated and
// therefore never change (v59, v63), and without rm, which is all ones at every function boundary.
def NaplesPUCSR : CalleeSavedRegs<
  !listconcat(SRegs<50, 57>.L, [FP_REG, RA_REG], VRegs<56, 58>.L, VRegs<60, 62>.L)>;
