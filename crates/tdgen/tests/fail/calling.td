include "machine.inc"

def CCUnheardOf : CCAction;

def CC_Odd : CallingConv<[CCAssignToStack<4, 3>]>;
def CC_Unknown : CallingConv<[CCUnheardOf]>;
def CC_Many : CallingConv<[CCIfType<[i128], CCSplitToType<i32, 17>>]>;
