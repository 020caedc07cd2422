class A; class B : A;
defset list<A> All = { def a : A; defset list<B> Some = { def b : B; foreach i = [1, 2] in def b#i : B; } multiclass M { def c : A; } defm d_ : M; }
def out { list<A> all = All; list<B> some = Some; int n = !size(All); }
