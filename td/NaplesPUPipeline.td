//===- NaplesPUPipeline.td - the numbers of the pipeline ----------------------===//
//
// docs/machine/pipeline.md. Cycles unless something else is said. Latencies of operations
// stand with them in NaplesPUHwOps.td; this is what the simulator's timing model needs
// beside them.
//
// Facts that only the model needs were measured on the hardware description, each with a
// program of its own in crates/npu-sim/tests/sim/facts/, where its cycles are recorded.
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
def FETCH_LIMIT      : PipelineConstant<11, "Fetched instructions of a thread at which its fetch pauses.">;
def FETCH_TO_ISSUE   : PipelineConstant<5, "Cycles from the fetch of an instruction to its issue.">;
def FETCH_MISS_TO_CONTROLLER : PipelineConstant<5, "Cycles from a fetch that misses to the cache controller.">;
def FETCH_MISS_TO_PAUSE : PipelineConstant<2, "Cycles from a fetch that misses to the thread being kept from fetching.">;
def LINE_TO_NEXT     : PipelineConstant<3, "Cycles from an instruction line being in its cache to the start of the next one that the instruction cache asks for.">;
def ISSUE_TO_EXECUTE : PipelineConstant<2, "Cycles from issue to the first execute cycle, where branches resolve.">;
def WRITE_BACK_LIMIT : PipelineConstant<8, "Results waiting in one write-back queue at which nothing issues.">;
def QUEUED_BEFORE_USE : PipelineConstant<2, "Cycles from where a result comes into its write-back queue to the first issue that can use it.">;
def LEAVES_BEFORE_USE : PipelineConstant<1, "Cycles from where a result leaves its write-back queue to the first issue that can use it.">;
def BARRIER_TO_ARRIVAL : PipelineConstant<4, "Cycles from the issue of a barrier to when its thread is first looked at for what is pending.">;
def BARRIER_ARRIVAL_BUSY : PipelineConstant<3, "Cycles from an arrival that the sync master takes to the next one.">;
def BARRIER_RELEASE  : PipelineConstant<6, "Cycles from the last arrival that the sync master takes to the next instruction of the threads.">;
def LOOK_TO_REST     : PipelineConstant<2, "Cycles from an operation's look at the data cache to where the thread has none pending, in the eyes of a barrier.">;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def QUEUE_LAG        : PipelineConstant<4, "Cycles from issue to when a load or store is seen in its queue, and looks at the cache.">;
def DATA_MISS_TO_CONTROLLER : PipelineConstant<2, "Cycles from a look at the data cache that misses to the cache controller.">;
def EVICTION_TO_CONTROLLER : PipelineConstant<2, "Cycles from a fill to the cache controller seeing the line that left.">;

//===----------------------------------------------------------------------===//
// The cache controller, without the delay of memory
//===----------------------------------------------------------------------===//

def READ_TO_FILL     : PipelineConstant<6, "Cycles from the start of a read to the line being in its cache.">;
def READ_TO_REPLAY   : PipelineConstant<7, "Cycles from the start of a read to the second look of the access that missed.">;
def READ_BUSY        : PipelineConstant<5, "Cycles from the start of a read to the start of the next transaction.">;
def TRANSACTION_BUSY : PipelineConstant<2, "Cycles from the start of a transaction that waits for no answer to the choice of the next one.">;
def WRITE_BUSY       : PipelineConstant<4, "Cycles from the start of a write to the start of the next transaction that needs memory.">;
def INVALIDATE_TO_END : PipelineConstant<3, "Cycles from the start of the write of an invalidated line to where the line is gone and its thread goes on, whatever memory does.">;
def PRESENT_TO_REPLAY : PipelineConstant<3, "Cycles from the start of a read whose line has come meanwhile to the second look of the access that missed.">;

//===----------------------------------------------------------------------===//
// Several cores: read in the sources of the hardware before the mesh could be run. The model
// does not follow the measurements in docs/machine/several-cores.md yet.
//===----------------------------------------------------------------------===//

// mc/system/npu_noc.sv
def MESH_WIDTH       : PipelineConstant<4, "Tiles of a row of the mesh.">;
def MESH_HEIGHT      : PipelineConstant<4, "Rows of the mesh.">;
def MEMORY_TILE      : PipelineConstant<15, "The tile that memory is in.">;
def HOST_TILE        : PipelineConstant<14, "The tile that the host is in, and the console.">;
// include/npu_user_defines.sv
def L2_SETS          : PipelineConstant<128, "Sets of the second-level cache.">;
def L2_WAYS          : PipelineConstant<8, "Ways of the second-level cache.">;
// The memory of the test bench accepts one request at a time.
def MEMORY_ANSWER    : PipelineConstant<2, "Cycles that a read takes memory for, without its delay.">;
