class A<int n> { int V = n; string N = NAME; }
multiclass MM { def q : A<3>; def : A<5>; }
multiclass M { def a : A<1>; def : A<2>; defm : MM; }
defm : M;
defm Z : M;
def : A<4>;
foreach i = [1,2] in def : A<i>;
defm "" : MM;
