class C<string s> { string v = !strconcat(s, "b"); string n = !strconcat("a", s, "c", s); code c = !strconcat([{ x }], s); }
def x : C<"q">; def y : C<"">;
