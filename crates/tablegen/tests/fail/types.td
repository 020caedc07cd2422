def r; class R; def a { int i = "s"; string s = 1; bit b = 2; bits<4> w = 16; bits<2> v = 0b101; list<int> l = ["a"]; list<int> m = 3; dag d = 1; R k = r; }
