//===- NaplesPUPipeline.td - the numbers of the pipeline ----------------------===//
//
// microarch.md 1, 7.2, 8, 9. Cycles unless something else is said. Latencies of operations
// stand with them in NaplesPUHwOps.td; this is what the simulator's timing model needs
// beside them.
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
def FETCH_MISS       : PipelineConstant<11, "Cycles that a missing instruction line costs, without the memory delay.">;
def FETCH_MISS_TO_CONTROLLER : PipelineConstant<5, "Cycles from a fetch that misses to the cache controller.">;
def FETCH_MISS_TO_PAUSE : PipelineConstant<2, "Cycles from a fetch that misses to the thread being kept from fetching.">;
def ISSUE_TO_EXECUTE : PipelineConstant<2, "Cycles from issue to the first execute cycle, where branches resolve.">;
def WRITE_BACK_LIMIT : PipelineConstant<8, "Results waiting in one write-back queue at which nothing issues.">;
def BARRIER_RELEASE  : PipelineConstant<10, "Cycles from the last arrival at a barrier to the next instruction of the first thread.">;

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def QUEUE_LAG        : PipelineConstant<4, "Cycles from issue to when a load or store is seen in its queue, and looks at the cache.">;
def DATA_MISS_TO_CONTROLLER : PipelineConstant<2, "Cycles from a look at the data cache that misses to the cache controller.">;
def EVICTION_LOOKS   : PipelineConstant<2, "Cycles, from the one after the second look on, in which a line that leaves is read and nothing else looks.">;
def EVICTION_TO_CONTROLLER : PipelineConstant<3, "Cycles from a fill to the cache controller seeing the line that left.">;

//===----------------------------------------------------------------------===//
// The cache controller, without the delay of memory
//===----------------------------------------------------------------------===//

def READ_TO_ANSWER   : PipelineConstant<4, "Cycles from the start of a read to its answer.">;
def READ_TO_FILL     : PipelineConstant<6, "Cycles from the start of a read to the line being in its cache.">;
def READ_TO_REPLAY   : PipelineConstant<7, "Cycles from the start of a read to the second look of the access that missed.">;
def READ_BUSY        : PipelineConstant<5, "Cycles from the start of a read to the start of the next transaction.">;
def WRITE_BUSY       : PipelineConstant<3, "Cycles from the start of a write to the start of the next transaction.">;
def PRESENT_BUSY     : PipelineConstant<4, "Cycles from the start of a read whose line has come meanwhile to the start of the next transaction.">;
def PRESENT_TO_ANSWER : PipelineConstant<3, "Cycles from the start of a read whose line has come meanwhile to where another one for the line can join it.">;
def PRESENT_TO_FILL  : PipelineConstant<5, "Cycles from the start of a read whose line has come meanwhile to where one that reads memory has filled the cache.">;
