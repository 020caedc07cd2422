// Values that do not fit.
class C<int n, string s = "x"> { int N = n; bits<4> B = n; }
def a : C<16>;
def b : C<"text">;
def c : C<1, 2>;
def d { bits<4> x = 16; bits<4> y = 0b101; bit z = 2; string s = 1; int i = "1"; list<int> l = [1, "2"]; }
def e { int x = !add("a", 1); int y = !head([1, "a"]); bit b = !eq(1, "a"); dag g = ("op" 1); }
def f { bits<4> v = 3; let v{4} = 1; let v{1-0} = 4; int w = v{7}; }
def g : C<1> { int B = 3; string N = "clash"; }
def h { int d = !div(1, 0); int s = !shl(1, 64); int l = !logtwo(0); list<int> t = !tail([]<int>); }
def i { int x = [1, 2][5]; int u = ?; int v = u; }
assert !eq(1, 2), "one is not " # 2;
class Pos<int n> { assert !gt(n, 0), "not positive: " # n; }
def j : Pos<-1>;
def k { dag x = !con((a 1), (b 2)); int y = !getdagarg<int>((a 1), 4); int z = !cond(0: 1); }
