class C<string s, code c> { code a = s; string b = c; string j = s # c; bit e = !eq(s, c); }
def x : C<"t", [{t}]>;
