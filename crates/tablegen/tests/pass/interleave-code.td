// Concatenated code fragments remain code; the type of the separator does not matter.
def A {
  string Strings = !interleave(["a", "b"], [{, }]);
  string Fragments = !interleave([[{a}], [{b}]], ", ");
  string Numbers = !interleave([1, 2], [{, }]);
}
