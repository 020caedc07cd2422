//===- NaplesPUPseudoInsts.td - pseudo-instructions --------------------------===//
//
// Pseudo-instructions that depend on registers, the frame or the positions of blocks are expanded
// to machine instructions after these are known (src/post_ra/expand.rs).
//
//===----------------------------------------------------------------------===//

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

// A register compared with zero.
def condition : PseudoOperand<"Cond">;
// A 32-bit number, unsigned and signed.
def imm32     : PseudoOperand<"u32">;
def simm32    : PseudoOperand<"i32">;

def anyvalue    : ClifOperand<"Value">;
def trapcode    : ClifOperand<"TrapCode">;
def stackslot   : ClifOperand<"StackSlot">;
def offset32    : ClifOperand<"Offset32">;
def funcref     : ClifOperand<"FuncRef">;
def globalvalue : ClifOperand<"GlobalValue">;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

// A constant, in one or two instructions, shared with other uses nearby.
def CONST    : PseudoInst<(outs GPR32:$dst), (ins imm32:$value), "const_gpr">;
def CONST_S  : PseudoInst<(outs GPR32:$dst), (ins simm32:$value), "signed_const_gpr">;
// Makes a single-use narrow load sign-extend.
def SEXTLOAD : PseudoInst<(outs GPR32:$dst), (ins anyvalue:$load), "sign_extended_load">;

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

def NONZERO : PseudoInst<(outs condition:$dst), (ins GPR32:$src), "nonzero">;
def ISZERO  : PseudoInst<(outs condition:$dst), (ins GPR32:$src), "is_zero">;
def INVERT  : PseudoInst<(outs condition:$dst), (ins condition:$src), "invert">;
// A branch over a move.
def SELECT  : PseudoInst<(outs GPR32:$dst), (ins condition:$cond, GPR32:$true, GPR32:$false), "select_gpr">;

//===----------------------------------------------------------------------===//
// Control flow. The compiler adds the blocks; patterns do not name them.
//===----------------------------------------------------------------------===//

def JUMP     : PseudoInst<(outs), (ins), "emit_jump">;
def BRIF     : PseudoInst<(outs), (ins condition:$cond), "emit_brif">;
def BR_TABLE : PseudoInst<(outs), (ins GPR32:$index), "emit_br_table">;
def TRAP     : PseudoInst<(outs), (ins trapcode:$code), "emit_trap">;
// Stops the thread until a debugger resumes it.
def DEBUGTRAP : PseudoInst<(outs), (ins), "emit_debugtrap">;
def TRAP_IF  : PseudoInst<(outs), (ins condition:$cond, trapcode:$code), "trap_if">;

//===----------------------------------------------------------------------===//
// Addresses and registers with a role
//===----------------------------------------------------------------------===//

def SLOT_ADDR      : PseudoInst<(outs GPR32:$dst), (ins stackslot:$slot, offset32:$offset), "slot_address">;
def FUNC_ADDR      : PseudoInst<(outs GPR32:$dst), (ins funcref:$callee), "function_address">;
// Refuses a global value that is not a symbol.
def SYMBOL_ADDR    : PseudoInst<(outs GPR32:$dst), (ins globalvalue:$global), "symbol_address"> { let mayRefuse = true; }
def FRAME_POINTER  : PseudoInst<(outs GPR32:$dst), (ins), "frame_pointer">;
def STACK_POINTER  : PseudoInst<(outs GPR32:$dst), (ins), "stack_pointer">;
def RETURN_ADDRESS : PseudoInst<(outs GPR32:$dst), (ins), "return_address">;
// The pinned register. Needs the flag `enable_pinned_reg`.
def GET_PINNED     : PseudoInst<(outs GPR32:$dst), (ins), "pinned_register"> { let mayRefuse = true; }
def SET_PINNED     : PseudoInst<(outs), (ins GPR32:$src), "set_pinned_register"> { let mayRefuse = true; }

//===----------------------------------------------------------------------===//
// Without machine instructions
//===----------------------------------------------------------------------===//

// No load or store is moved across it.
def FENCE          : PseudoInst<(outs), (ins), "emit_fence">;
// A position for debug tags.
def SEQUENCE_POINT : PseudoInst<(outs), (ins), "emit_sequence_point">;
