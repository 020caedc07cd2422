// Code fragments stay code when they are joined; what is between them does not count.
def A {
  string Strings = !interleave(["a", "b"], [{, }]);
  string Fragments = !interleave([[{a}], [{b}]], ", ");
  string Numbers = !interleave([1, 2], [{, }]);
}
