// A `let` without a body, a `foreach` without its list, a `defset` without a value.
let a = 1 class X;
foreach i = [1] class X;
defset list<X> s class Y;
deftype T int;
