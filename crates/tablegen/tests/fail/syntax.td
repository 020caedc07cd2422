// Recovery: each faulty statement or item is reported, and the others are still parsed.
class A { int x = ; int y = 2 int z = 3; string s = "open
  bits<4> b = {1, 0; int fine = 1; }
def x : A { let y = }; 
def y : A { let fine = 3; }
class class { }
def z { string t = "bad \q escape"; }
multiclass M { def q : A; 
  def r : ; def s : A; }
foreach = [1] in def n;
let x in def m;
}
def good : A { int more = fine; int undefined = nothing; }
#ifdef X
