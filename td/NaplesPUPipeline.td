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
// Several cores: the mesh, as measured (docs/machine/several-cores.md)
//===----------------------------------------------------------------------===//

def MESH_WIDTH       : PipelineConstant<4, "Tiles in a row of the mesh.">;
def MESH_HEIGHT      : PipelineConstant<4, "Rows of the mesh.">;
def MEMORY_TILE      : PipelineConstant<15, "The tile with main memory.">;
def HOST_TILE        : PipelineConstant<14, "The tile with the host and the console.">;
def CORE_TILES       : PipelineConstant<8, "Tiles with a core and a sync master, from tile 0 on.">;
def L2_SETS          : PipelineConstant<128, "Sets of the second-level cache of a tile.">;
def L2_WAYS          : PipelineConstant<8, "Ways of the second-level cache of a tile.">;
def LINE_FLITS       : PipelineConstant<10, "Flits of a message with a line.">;
def EVICTED_LINE_FLITS : PipelineConstant<9, "Flits of a message with a modified line that leaves a data cache.">;
def WORD_FLITS       : PipelineConstant<2, "Flits of a message of a barrier or of I/O.">;
def NEXT_DESTINATION : PipelineConstant<1, "Cycles for which a sender is occupied, beyond the flits of a message, before it sends a copy to the next destination.">;
def LAST_DESTINATION : PipelineConstant<2, "Cycles for which a sender is occupied, beyond the flits of a message, after the last destination.">;
def MESSAGE_CYCLES   : PipelineConstant<6, "Cycles of a message of one flit, apart from its hops.">;
def HOP_CYCLES       : PipelineConstant<2, "Cycles of a hop between neighboring tiles.">;
def REQUEST_TO_MESSAGE : PipelineConstant<3, "Cycles from the start of a transaction in the cache controller to its message.">;
def MESSAGE_TO_FILL  : PipelineConstant<3, "Cycles from the arrival of a line to its fill.">;
def ACK_TO_FILL      : PipelineConstant<4, "Cycles from the arrival of the last acknowledgment to the fill, if it follows the line.">;
def REQUESTS_WAITING : PipelineConstant<4, "Flushes (or writes to I/O) in the queue of the controller from which on the next one waits in the load/store unit, with one core. A request leaves the queue one cycle after its start.">;
def REQUESTS_WAITING_SHARED : PipelineConstant<5, "The same with several cores, where a request leaves the queue two cycles after its start.">;
def RESPONSES_WAITING : PipelineConstant<4, "Messages of the response network in a core's network interface from which on the controller takes no flush.">;
def FLUSH_TO_NEXT_OF_SET : PipelineConstant<2, "Cycles from the start of a flush to the next transaction of the same set of the data cache, with several cores.">;
def NEXT_MESSAGE_OF_SET : PipelineConstant<3, "Cycles from a message that a core takes to the next one of the same set of its data cache.">;
def REQUESTS_OF_SET  : PipelineConstant<3, "Pending requests of a core for lines of one set of its data cache.">;
def FORWARD_TO_ANSWER : PipelineConstant<3, "Cycles from a request of a directory to a core to the core's answer.">;
def DIRECTORY_ANSWER : PipelineConstant<2, "Cycles from a request to the answer of a directory.">;
def DIRECTORY_BUSY   : PipelineConstant<3, "Cycles from a request that a directory takes to the next one.">;
def MEMORY_ANSWER    : PipelineConstant<6, "Cycles from a request to the answer of the memory tile, without the delay of memory.">;
def MEMORY_READ      : PipelineConstant<5, "Cycles from a read of the memory tile to the next one, without the delay of memory.">;
def MEMORY_WRITE     : PipelineConstant<3, "Cycles from a write of the memory tile to the next access, without the delay of memory.">;
def MEMORY_ACKNOWLEDGMENT : PipelineConstant<2, "Cycles from the start of a write in the memory tile to its acknowledgment.">;
def CORE_START       : PipelineConstant<4, "Cycles from the start of a core by the host to the start of the next one.">;
def LINE_REQUEST_TO_MESSAGE : PipelineConstant<1, "Cycles from the start of a read for the instruction cache to its message.">;
def LINE_MESSAGE_TO_FILL : PipelineConstant<1, "Cycles from the arrival of an instruction line to its fill.">;
def INVALIDATED_TO_END : PipelineConstant<2, "Cycles from the acknowledgment of an invalidated line until its thread continues.">;
def IO_MESSAGE_TO_END : PipelineConstant<4, "Cycles from the answer of the host to the end of the access.">;
def SYNC_TO_RELEASE  : PipelineConstant<5, "Cycles from the last arrival that the sync master of a tile accepts to the first release that it sends.">;
def RELEASE_TO_ISSUE : PipelineConstant<3, "Cycles from the arrival of a release to the next instruction of the threads.">;
