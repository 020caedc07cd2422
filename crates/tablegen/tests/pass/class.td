class Empty; class Fwd; class Args<int a, int b = !add(a, 1), string s = "d"> { int A = a; int B = b; string S = s; }
class Fwd { int x = 1; } class Two : Fwd, Args<3>;
def d1 : Args<1>; def d2 : Args<1, 5>; def d3 : Args<1, s = "named">; def d4 : Two { let x = 2; } def d5 : Empty, Args<b = 4, a = 2>;
