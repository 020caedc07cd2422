class I<int n> { int N = n; }
defvar yes = 1;
if yes then def a : I<1>; else def never : I<2>;
if !eq(yes, 2) then { def never2 : I<3>; } else if yes then { def b : I<4>; }
foreach i = [0, 1, 2] in if !eq(i, 1) then def one : I<i>; else { def other#i : I<i>; }
