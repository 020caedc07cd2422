class A<int n> { int N = n; int M = !mul(n, 2); A next = ?; }
class F<list<int> l> { int ret = !foldl(0, l, s, i, !add(s, i)); }
class Fact<int n> { int ret = !if(!le(n, 1), 1, !mul(n, Fact<!if(!le(n, 1), 1, !sub(n, 1))>.ret)); }
class C<int n> { A a = A<n>; int m = A<!add(n, 1)>.M; int s = F<[n, n, 3]>.ret; list<A> l = [A<1>, A<n>]; int f = Fact<n>.ret; }
def x : C<1>; def y : C<4>; def z { A same = A<1>; }
