#define A
#define A
class C<string s> { string v = s; }
def ok : C<#"leading">;
def ok2 : C<"a" ## "b">;
