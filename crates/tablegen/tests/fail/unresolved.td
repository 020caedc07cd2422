class A<int n> { int m = n; bits<4> b = n; int v = ?; int u = v; }
def x : A<99>;
multiclass M<int q> { def _y : A<q>; }
multiclass N<int q> { defm _m : M<q>; }
defm z : N<77>;
