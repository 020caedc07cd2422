class A { int n = 1; } class B : A; def b : B; def b2 : B { let n = 2; }
class C<string s, int i, A a> { B v = !cast<B>(s); string w = !cast<string>(a); string x = !cast<string>(i); int n = !cast<A>(s # i).n; B y = !cast<B>(a); bits<4> z = !cast<bits<4>>(i); }
def x : C<"b", 2, b>;
def self { string name = "self"; int n = 4; }
