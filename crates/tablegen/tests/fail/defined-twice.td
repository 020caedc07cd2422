class A { int x; } class A { int y; }
def a; def a;
multiclass M { def x; } multiclass M { def y; }
defm q : M; defm q : M;
defvar v = 1; defvar v = 2;
deftype t = int; deftype t = bit;
class P<int a, int a>;
