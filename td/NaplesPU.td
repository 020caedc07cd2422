//===- NaplesPU.td - the NaplesPU many-core, described once -------------------===//
//
// This folder holds every fact about the machine that fits in a table. The compiler, assembler,
// disassembler and simulator get these facts from here. docs/machine/ describes the machine.
//
//===----------------------------------------------------------------------===//

include "Target.td"
include "SearchableTable.td"
include "TargetSelectionDAG.td"
include "NaplesPURegisterInfo.td"
include "NaplesPUCallingConv.td"
include "NaplesPUSystem.td"
include "NaplesPUSemantics.td"
include "NaplesPUHwOps.td"
include "NaplesPUInstrFormats.td"
include "NaplesPUHwLayouts.td"
include "NaplesPUOperands.td"
include "NaplesPUInstrInfo.td"
include "NaplesPUInstrMappings.td"
include "NaplesPUPseudoInsts.td"
include "NaplesPUPatterns.td"
include "NaplesPUWordNodes.td"
include "NaplesPULaneNodes.td"
include "NaplesPUVectorPatterns.td"
include "NaplesPURuntime.td"
include "NaplesPULegalize.td"
include "NaplesPUCosts.td"
include "NaplesPUErrata.td"
include "NaplesPURelocs.td"
include "NaplesPUPipeline.td"
include "NaplesPUSettings.td"
include "NaplesPUIntrinsics.td"

def NaplesPU : Target {
  let Name = "naplespu";
  let Triple = "naplespu-unknown-none-elf";
  let DataLayout = "e-m:e-p:32:32";
}
