// Incomplete statements and types.
defm X : Y
deftype T
defvar a
dump "x"
assert 1, "x"
class P<int a { }
class Q { bits a; }
class R1 { bits<x> a; }
class R2 { bits<3 a; }
class S { list a; }
class U { list<int a; }
class V { let a 1; }
class W2 { let a = 1 let b = 2; }
let a = 1 { }
let a<1 = 1 in { }
foreach i = [1] { }
defset list<P> s { }
deftype T int;
class class;
def d1 { int in = 1; }
deftype T2 = int
