class A<int n, string s = "x"> { int N = n; string S = s; field bits<4> B = 3; }
class B<int m> : A<m> { let S = "bb"; code C = [{ x }]; }
multiclass M<int k> { def one : B<k>; def two : A<k> { let N = 7; } }
multiclass M2<int k> { defm X : M<k>; }
defm D : M2<4>;
def Z : B<3> { int own = N; let B{0} = 0; }
def : A<9>;
defset list<A> SS = { def Q : A<1>; }
foreach i = [1,2] in def F#i : A<i>;
class E<int v, string a = ""> { int V = v; string Alias = a; }
def e1 : E<5>; def e0 : E<2, "zz">; def e10 : E<7>;
def rr { A x = A<4>; }
defvar gg = 4;
