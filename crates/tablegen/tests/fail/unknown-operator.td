def a { int n = !ad(1, 2); int m = !foo<int>(1); }
