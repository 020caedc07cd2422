class R<int n> { int N = n; } def op; def q;
class C<list<int> l, dag d> { int n = 2; list<int> v = !foreach(i, l, !add(i, n)); list<R> r = !foreach(i, l, R<i>); dag e = !foreach(x, d, !subst(op, q, x)); list<string> s = !foreach(i, l, "a" # i); list<list<int>> z = !foreach(i, l, !foreach(j, l, !mul(i, j))); }
def x : C<[1, 2], (op op:$a, (op op:$b))>; def y : C<[], (q)> { let n = 5; }
