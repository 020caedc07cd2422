// Late binding, `let`s, class values, casts, tests of records.
class Base<string hi> { string salutation = hi; string text = salutation # " world"; int base = 1; int late = !add(base, 1); }
def plain : Base<"Hello">;
def changed : Base<"Hello"> { let salutation = "Bye"; let base = 10; }
class Opt<int a, int b = !add(a, 1), string c = "c" # b> { int A = a; int B = b; string C = c; }
def o1 : Opt<1>; def o2 : Opt<1, c = "named">; def o3 : Opt<b = 5, a = 4>;
class Fact<int n> { int ret = !if(!le(n, 1), 1, !mul(n, Fact<!sub(n, 1)>.ret)); }
class Ini<int n> { bit V = !initialized(n); }
def uses { int f = Fact<10>.ret; Opt anon = Opt<3>; Opt same = Opt<3>; bit eq = !eq(anon, same);
  bit isa = !isa<Opt>(anon); bit isnot = !isa<Base>(anon); bit ex = !exists<Opt>("o1"); bit exno = !exists<Base>("o1"); bit exno2 = !exists<Opt>("nope");
  bit self = !exists<Base>("uses"); Opt byname = !cast<Opt>("o" # 2); int viaField = !cast<Opt>("o3").B; list<Opt> all = !instances<Opt>("^o"); 
  bit init = Ini<?>.V; bit init3 = Ini<3>.V; bit init2 = !initialized(isa); }
class Encoding<bits<4> opc> { field bits<12> Inst; bits<3> dst; bit flag; bits<4> imm = 5; let Inst{11-8} = opc; let Inst{7-5} = dst; let Inst{4} = flag; let Inst{3-0} = imm; }
def e1 : Encoding<0b1001>; def e2 : Encoding<3> { let dst = 2; let flag = 1; bits<4> imm2 = ?; let Inst{3,1} = imm2{1-0}; let Inst{0} = ?; }
class Self { list<Self> others = []; Self me = !cast<Self>(NAME); } def self : Self { let others = [self]; }
class Chain1<int x> { int X = x; } class Chain2<int y> : Chain1<!add(y, 1)>; class Chain3<int z> : Chain2<!mul(z, 2)> { int Z = X; } def chained : Chain3<5>;
class Two<int v> { int V = v; } class Three { int V = 3; } def later : Two<2>, Three; def later2 : Three, Two<2>;
let V = 9 in { def let1 : Three; let V = 10 in def let2 : Two<1>; def let3 : Three { let V = 11; } }
class Fwd; class User { list<Fwd> l = []; } class Fwd { int F = 1; } def fwd : Fwd; def user : User { let l = [fwd]; }
