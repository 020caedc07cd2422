// Each error is reported once, where its cause is.
class Inst<bits<6> opcode> { bits<32> Inst; let Inst{5-0} = opcode; }
class Shifted<bits<6> opcode> : Inst<!add(opcode, 20)>;
def fits : Shifted<40>;
def exceeds : Shifted<50>;

class Missing { int a = 1 int b = a; let a = 2 }
def semicolon : Missing
def y { int z = semicolon.b; Missing m = semicolon  Missing n = m; }

class Orphan : Unknown { int own = inherited; }
def orphan : Orphan { let inherited = 1; }
def heir : Missing, Unknown { int c = !add(b, inherited); }
defvar sum = !add(orphan.inherited, heir.b, heir.inherited);
class Sized<int n> { int size = n; }
def arguments : Sized<nowhere> { int twice = !mul(size, 2); }
defvar size = arguments.size;
