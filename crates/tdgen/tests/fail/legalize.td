// Faults of the table of legalization.
include "Target.td"
include "SearchableTable.td"
include "NaplesPURuntime.td"
include "NaplesPULegalize.td"

def TwoForOneCell : OperationAction<["iadd"], [i32], Expand>;
def TwoUnderOneCondition : Refuse<["load"], [v16i32], "a", "b", MaybeUnaligned>;
def OnlyIfAligned : OperationAction<["stack_store"], [i32], Legal, MaybeUnaligned>;
def NotAColumn : OperationAction<["stack_load"], [i1], Legal>;
def NoReason : OperationAction<["stack_load"], [i32], Refused>;
def ReasonForNothing : Refuse<["stack_load"], [i32], "an i64"> {
  let Action = Legal;
}
def RoutineForNothing : OperationAction<["stack_load"], [i32], Legal> {
  let Routine = __npu_mul128;
}
def NotAnOpcode : OperationAction<["iadd.i32"], [i32], Legal>;
def SecondTypes : UnsupportedTypes<"$op", "none">;
