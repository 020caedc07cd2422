class A { int x = 1; } class B : A; class C : A;
def a : A, A; def b : B, C;
class D { string x = "s"; } def c : A, D;
