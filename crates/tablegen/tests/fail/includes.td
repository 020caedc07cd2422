include "nothing.td"
include "cycle.td"
