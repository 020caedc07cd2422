include "common.td"
class Q { int v; }
class Z<int p> : Q { int a = p; int b = a; list<int> l = [p]; }
def zz : Z<5>;
let v = 2 in def z3 : Z<6> { let a = 7; }
class Y<int q> : Z<q>;
def y : Y<3>;
def c : Common<1>;
