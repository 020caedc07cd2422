include "Target.td"

def A : Register<"a", 0, 0>;
def B : Register<"b", 2, 1>;
def C : Register<"c", 1, 1>;
def D : Register<"d", 4, 3>;
def LONELY : Register<"lonely", 5, 5>;

def File : RegisterClass<"s", [i32], 4, 4, [A, B, C, D]> {
  let AllocationOrder = [A, B, A];
  let Reserved = [D];
}

def Strange : RegisterClass<"x", [i32], 4, 4, [A]>;
