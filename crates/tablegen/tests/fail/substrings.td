def a { string s = !substr("abc", 4); string t = !substr("abc", 1, -1); int f = !find("abc", "b", 9); bit m = !match("a", "("); }
