//===- NaplesPUPipeline.td - the numbers of the pipeline ----------------------===//
//
// docs/machine/pipeline.md. Values are in cycles unless stated otherwise. Latencies of operations
// are in NaplesPUHwOps.td; the other numbers of the simulator's timing model are here.
//
// Facts that only the model needs were measured on the hardware description. Each has a program in
// crates/npu-sim/tests/sim/facts/, which also records its cycles.
//
//===----------------------------------------------------------------------===//

class PipelineConstant<int value, string summary> : Constant<value> {
  let Summary = summary;
}

//===----------------------------------------------------------------------===//
// Fetch and issue
//===----------------------------------------------------------------------===//

def ICACHE_SETS      : PipelineConstant<32, "Sets of the instruction cache.">;
def ICACHE_WAYS      : PipelineConstant<4, "Ways of the instruction cache.">;
def FETCH_LIMIT      : PipelineConstant<11, "Number of fetched instructions of a thread at which its fetch pauses.">;
def FETCH_TO_ISSUE   : PipelineConstant<5, "Cycles from the fetch of an instruction to its issue.">;
def FETCH_MISS_TO_CONTROLLER : PipelineConstant<5, "Cycles from a fetch that misses to the cache controller.">;
def FETCH_MISS_TO_PAUSE : PipelineConstant<2, "Cycles from a fetch that misses until the thread stops fetching.">;
def LINE_TO_NEXT     : PipelineConstant<3, "Cycles from the arrival of an instruction line in the cache to the start of the next read for the instruction cache.">;
def ISSUE_TO_EXECUTE : PipelineConstant<2, "Cycles from issue to the first execute cycle, where branches resolve.">;
def WRITE_BACK_LIMIT : PipelineConstant<8, "Number of results in one write-back queue at which issue stops.">;
def QUEUED_BEFORE_USE : PipelineConstant<2, "Cycles from the entry of a result into its write-back queue to the first issue that can use it.">;
def LEAVES_BEFORE_USE : PipelineConstant<1, "Cycles from the exit of a result from its write-back queue to the first issue that can use it.">;
def BARRIER_TO_ARRIVAL : PipelineConstant<4, "Cycles from the issue of a barrier to the first check of its thread for pending operations.">;
def BARRIER_ARRIVAL_BUSY : PipelineConstant<3, "Cycles from an arrival that the sync master accepts to the next one.">;
def BARRIER_RELEASE  : PipelineConstant<6, "Cycles from the last arrival that the sync master accepts to the next instruction of the threads.">;
def LOOK_TO_REST     : PipelineConstant<2, "Cycles from an operation's data cache lookup until a barrier no longer counts it as pending.">;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def QUEUE_LAG        : PipelineConstant<4, "Cycles from the issue of a load or store to its appearance in the queue and its cache lookup.">;
def DATA_MISS_TO_CONTROLLER : PipelineConstant<2, "Cycles from a data cache lookup that misses to the cache controller.">;
def EVICTION_TO_CONTROLLER : PipelineConstant<2, "Cycles from a fill until the cache controller receives the evicted line.">;

//===----------------------------------------------------------------------===//
// The cache controller, without the delay of memory
//===----------------------------------------------------------------------===//

def READ_TO_FILL     : PipelineConstant<6, "Cycles from the start of a read until the line is in its cache.">;
def READ_TO_REPLAY   : PipelineConstant<7, "Cycles from the start of a read to the second lookup of the access that missed.">;
def READ_BUSY        : PipelineConstant<5, "Cycles from the start of a read to the start of the next transaction.">;
def TRANSACTION_BUSY : PipelineConstant<2, "Cycles from the start of a transaction that waits for no answer to the choice of the next one.">;
def WRITE_BUSY       : PipelineConstant<4, "Cycles from the start of a write to the start of the next transaction that needs memory.">;
def INVALIDATE_TO_END : PipelineConstant<3, "Cycles from the start of the write of an invalidated line until the line is invalid and its thread continues, regardless of memory.">;
def PRESENT_TO_REPLAY : PipelineConstant<3, "Cycles from the start of a read whose line has arrived meanwhile to the second lookup of the access that missed.">;

//===----------------------------------------------------------------------===//
// Several cores: numbers from the sources of the hardware, from before the mesh could be run. The
// model does not follow the measurements in docs/machine/several-cores.md yet.
//===----------------------------------------------------------------------===//

// mc/system/npu_noc.sv
def MESH_WIDTH       : PipelineConstant<4, "Tiles in a row of the mesh.">;
def MESH_HEIGHT      : PipelineConstant<4, "Rows of the mesh.">;
def MEMORY_TILE      : PipelineConstant<15, "The tile with main memory.">;
def HOST_TILE        : PipelineConstant<14, "The tile with the host and the console.">;
// include/npu_user_defines.sv
def L2_SETS          : PipelineConstant<128, "Sets of the second-level cache.">;
def L2_WAYS          : PipelineConstant<8, "Ways of the second-level cache.">;
// The memory of the test bench accepts one request at a time.
def MEMORY_ANSWER    : PipelineConstant<2, "Cycles for which a read occupies memory, without its delay.">;
