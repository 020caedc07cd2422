class Base<int n, string s = "x"> { int Num = n; string S = s # n; bits<4> B = n; field bits<8> Inst; }
class Enc<bits<4> op> : Base<3> { bits<3> dst; bits<3> src; let Inst{7-4} = op; let Inst{3-1} = dst; let Inst{0} = 0; int Late = !add(Num, 1); string N = NAME; }
def A : Enc<5> { let Num = 10; }
def : Base<1>;
multiclass M<int k> { def _a : Base<k>; def NAME # "_b" : Base<!add(k, 1), "q"> { dag D = (A 1:$x, $y, (A B:$z)); list<int> L = [1,2,k]; Base b = Base<7>; Base b2 = Base<7, "x">; } defvar t = k; }
def B;
defm X : M<4>;
foreach i = 0-2 in { def R#i : Base<i>; let Num = 99 in def Q#i : Base<i>; }
foreach i = {0-1,5} in foreach j = [1,2] in def P#i#_#j { int v = !shl(i, j); code c = [{ foo
 bar }]; bit b = !eq(i, j); string t = !cast<string>(i) # !if(!eq(i,j), "eq", "ne"); }
class Rec<int n> { int V = !if(!le(n, 0), 0, !add(n, Rec<!sub(n, 1)>.V)); }
def rr { int a = Rec<10>.V; list<string> xs = !foreach(x, [1,2,3], "n" # x); int s = !foldl(0, [1,2,3], aa, bb, !add(aa, bb)); list<int> f = !filter(x, [1,2,3,4], !and(x, 1)); bits<4> q = {1,0,?,1}; bits<2> sl = q{3-2}; int u; list<int> em = []; Base by = !cast<Base>("A"); int ff = !cast<Base>("A").Num; }
let Num = 5, Inst<1-0> = 0b11 in { defm Y : M<6>; def YY : Enc<7>; }
if !eq(1, 1) then { def yes; } else { def no; }
defset list<Base> Bs = { def bs1 : Base<1>; defm bs2 : M<2>; }
def bsu { list<Base> l = Bs; }
