class A { int n = 1; } def reg1 : A;
class C<string s> { A r = !cast<A>(s); }
def x : C<"reg2">;
class B; def y { B b = !cast<B>("reg1"); }
