def xx;
class C<int i, list<string> l, dag d> { int a = i; list<string> b = l; dag c = d; bits<4> e = ?; string s = ?; }
def x : C<3, ["a", ?], (xx ?)>;
