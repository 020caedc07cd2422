// An empty string remains a part of a paste while the other parts are unknown.
class Asm<string op, string kind> {
  string Text = op # "" # "{" # kind # "" # "|" # "" # kind # "}";
  string Left = "" # op;
  string Right = op # "";
  string Known = "a" # "" # "b";
}
def A : Asm<"mov", ".8b">;
