class I<int n> { int N = n; }
foreach i = [1, 2, 3] in def a#i : I<i>;
foreach i = 0-2 in def b#i : I<i>;
foreach i = 5...3 in def c#i : I<i>;
foreach i = {0-1, 7} in foreach s = ["x", "y"] in def d#i#s : I<i>;
foreach i = !range(2) in { defvar j = !add(i, 10); def e#j : I<j>; }
foreach r = [a1, a2] in def of_#r : I<!add(r.N, 100)>;
