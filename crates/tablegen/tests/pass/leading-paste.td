class C<string s> { string v = s; }
def ok : C<"a" # "b">;
