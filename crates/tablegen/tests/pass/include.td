include "common.td"
def x : Common<3>;
class Split {
include "fields.inc"
}
def y : Split;
