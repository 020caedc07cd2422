class A<int n>;
defvar a = A<1;
