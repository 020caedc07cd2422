multiclass M { class X; defset list<int> S = { } }
foreach i = 3 in def a;
foreach i = [1] in { class Y; multiclass N { } }
defset int T = { }
class A; class B; defset list<A> U = { def b : B; }
if "s" then def c;
deftype D = A;
let x = 1 in { deftype E = int; }
