// A name cannot be both a type and a class, or both a field and a variable of one body.
deftype Text = string;
class Text;
class Text { int a = 1; }
class First { int a = 1; defvar a = 2; }
class Second { defvar a = 2; int a = 1; }
class Derived : First { defvar a = 3; }
def record { defvar b = 1; bits<2> b = 2; }
// Variables of enclosing blocks may be hidden.
defvar outer = 1;
def hides { defvar outer = 2; int value = outer; }
def hides_too { int outer = 2; }

// Indices of lists are numbers.
class Slice<list<string> names> {
  list<int> a = [1, 2, 3][names];
  list<int> b = [1, 2, 3][0, names];
  int c = [1, 2, 3]["0"];
  list<int> d = [1, 2, 3][["0"]];
}
