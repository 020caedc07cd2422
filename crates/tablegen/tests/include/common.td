class Common<int n> { int N = n; }
