// An empty string is a part of what is pasted as long as the rest is not known.
class Asm<string op, string kind> {
  string Text = op # "" # "{" # kind # "" # "|" # "" # kind # "}";
  string Left = "" # op;
  string Right = op # "";
  string Known = "a" # "" # "b";
}
def A : Asm<"mov", ".8b">;
