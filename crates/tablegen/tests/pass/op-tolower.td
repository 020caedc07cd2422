class C<string s> { string v = !tolower(s); }
def x : C<"Hello WORLD 1">;
