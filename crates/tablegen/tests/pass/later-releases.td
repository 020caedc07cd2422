// Features of releases after 22: `!sort`, `!switch`, `let append` and `prepend`; a doubled `#` of old files.
class A<int x> { int X = x; }
class Z { list<int> L = []; string S = "m"; }
def s { list<int> l = !sort(x, [3, 1, 2], x); string w = !switch(2, 1: "a", 2: "b", "c"); list<string> q = !sort(x, ["b", "a"], x); }
def ap : Z { let append L = [1]; let prepend L = [0]; let append S = "n"; let prepend S = "l"; }
def h { string s = "x" ## "y"; dump "in body"; }
dump "hello " # !add(1, 2);
