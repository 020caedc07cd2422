class C<string s> { string v = !toupper(s); }
def x : C<"Hello world 1">;
