class T<int n> { int N = n; }
def a { T t = T<1>; } def b { T t = T<1>; T u = T<2>; } def c { bit same = !eq(a.t, b.t); bit not = !eq(b.t, b.u); }
