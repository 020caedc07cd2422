defvar g = "G"; class R; def r : R;
class C<string s, int n> { string a = s # "x"; string b = "x" # s # n; string c = r # s; string d = "v" # g; list<int> l = [n] # [1] # [2]; }
def p # q : C<"s", 3>; foreach i = [1, 2] in def n#i#_t : C<"f"#i, i>;
