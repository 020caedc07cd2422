class A<int n> { bits<2> b = n; }
foreach i = [1, 2, 3, 4, 5, 6] in def r#i : A<i>;
