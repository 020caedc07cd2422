// Operators on strings, escapes, adjacent literals, code fragments.
def d0;
def strings {
  string a = !strconcat("a", "b", "c");
  string b = !substr("hello", 1, 3) # !substr("hello", 3) # !substr("x", 1);
  int c = !find("hello", "l");
  int d = !find("hello", "l", 3);
  int e = !find("hello", "z");
  string f = !tolower("ABC d") # !toupper("abc D");
  string g = !interleave(["x", "y"], ", ");
  string h = !interleave([1, 2, 3], "-");
  string i = !subst("l", "LL", "hello");
  int j = !size("hello");
  bit k = !empty("");
  bit l = !match("add_rr", "^add_[a-z]+$");
  bit m = !match("add_rr", "[0-9]");
  string n = "adjacent" " " "strings";
  string o = "esc\t\"q\" \\ \n end";
  code p = [{ return 1; }];
  string q = [{code}] # "text";
  string r = !cast<string>(d0) # !cast<string>(12) # !cast<string>(0b11);
  string s = 1 # d0 # name # 0b11;
  string t = !repr([1, 2]) # !repr("s");
  string u = !strconcat([{a}], [{b}]);
}
