//===- NaplesPUSystem.td - memory map, control registers, frames -------------===//
//
// docs/machine/memory.md, docs/machine/control.md.
//
//===----------------------------------------------------------------------===//

// A number with a name.
class Constant<int value> {
  int Value = value;
  string Summary = "";
}

//===----------------------------------------------------------------------===//
// Memory map
//===----------------------------------------------------------------------===//

class MemoryMapConstant<int value, string summary> : Constant<value> {
  let Summary = summary;
}

def TRAP_VECTOR     : MemoryMapConstant<0x380, "Address at which a misaligned access continues.">;
def BOOT_PC         : MemoryMapConstant<0x400, "Address at which every thread starts.">;
def STACKS_BASE     : MemoryMapConstant<0x80000, "Lowest address of the stacks of all threads.">;
def STACK_SIZE      : MemoryMapConstant<0x4000, "Bytes of stack per thread.">;
def DATA_BASE       : MemoryMapConstant<0x800000, "Address of the data section.">;
def IO_BASE         : MemoryMapConstant<0xFF000000, "First address of I/O space.">;
def IO_LAST         : MemoryMapConstant<0xFFFFFF00, "Last address of I/O space.">;
def CONSOLE_DATA    : MemoryMapConstant<0xFF000000, "A word written here is a character on the console.">;
def CONSOLE_STATUS  : MemoryMapConstant<0xFF000004, "Bit 0: a character can be read.">;
def END_LINE        : MemoryMapConstant<0xFFFFFFC0, "A flush of this line reports to the host that a thread ended.">;

//===----------------------------------------------------------------------===//
// Hardware configuration
//===----------------------------------------------------------------------===//

class HardwareConstant<int value, string summary> : Constant<value> {
  let Summary = summary;
}

def THREADS_PER_CORE : HardwareConstant<8, "Hardware threads per core.">;
def LANES            : HardwareConstant<16, "Lanes of a vector register.">;
def CACHE_LINE       : HardwareConstant<64, "Bytes of a cache line.">;
def DCACHE_SETS      : HardwareConstant<32, "Sets of the data cache of a core.">;
def DCACHE_WAYS      : HardwareConstant<4, "Ways of the data cache of a core.">;
def SCRATCHPAD_SIZE  : HardwareConstant<0x10000, "Bytes of scratchpad memory per core.">;
def BARRIER_IDS      : HardwareConstant<512, "Barrier ids; higher bits of an id are ignored.">;
def BARRIER_COUNTERS : HardwareConstant<32, "Barriers that a sync master counts, by the low bits of the id; the other bits name its tile.">;
def BARRIER_THREADS  : HardwareConstant<128, "Largest number of participants of a barrier.">;
def INSTRUCTION_SIZE : HardwareConstant<4, "Bytes of an instruction.">;
def TAKEN_BRANCH     : HardwareConstant<8, "Cycles from the issue of a taken branch to that of its target.">;
def LOST_RESULT      : HardwareConstant<11, "A float result of this latency or a greater one can be lost before a taken branch.">;
def SCRATCHPAD_SPACE     : HardwareConstant<68, "Address space number of the scratchpad.">;
def SCRATCHPAD_SPACE_DOC : HardwareConstant<77, "Address space number of the scratchpad in old documents.">;

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

class FrameConstant<int value, string summary> : Constant<value> {
  let Summary = summary;
}

def STACK_ALIGN      : FrameConstant<64, "Alignment of sp at every call, in bytes.">;
def WORD_SLOT        : FrameConstant<4, "Size and alignment of a word on the stack.">;
def VECTOR_SLOT      : FrameConstant<64, "Size and alignment of a vector on the stack.">;
def RED_ZONE         : FrameConstant<0, "Bytes below sp that a leaf may use.">;
def STACK_ARG_OFFSET : FrameConstant<0, "Offset of the first stack argument from sp at the call.">;

//===----------------------------------------------------------------------===//
// Control registers
//===----------------------------------------------------------------------===//

// `access` is "r", "rw" or "w": the accesses that threads may make. Other writes are ignored.
class ControlRegister<int num, string name, string access, string summary> {
  bits<6> Number = num;
  string Name = name;
  bit Readable = !ne(!find(access, "r"), -1);
  bit Writable = !ne(!find(access, "w"), -1);
  string Summary = summary;
  assert !not(!empty(!filter(one, ["r", "w", "rw"], !eq(one, access)))), "access `" # access # "` of `" # name # "` is not `r`, `w` or `rw`";
}

def ControlRegister : GenericEnum {
  let FilterClass = "ControlRegister";
  let NameField = "Name";
  let ValueField = "Number";
}
def ControlRegisters : GenericTable {
  let FilterClass = "ControlRegister";
  let CppTypeName = "ControlRegisterInfo";
  let Fields = ["Number", "Name", "Readable", "Writable", "Summary"];
  let PrimaryKey = ["Number"];
  let PrimaryKeyName = "controlRegisterByNumber";
}
def controlRegisterByName : SearchIndex {
  let Table = ControlRegisters;
  let Key = ["Name"];
}

def CR_TILE_ID         : ControlRegister<0, "tile_id", "r", "Number of the tile.">;
def CR_CORE_ID         : ControlRegister<1, "core_id", "r", "Number of the core in its tile.">;
def CR_THREAD_ID       : ControlRegister<2, "thread_id", "r", "Number of the thread in its core.">;
def CR_GLOBAL_ID       : ControlRegister<3, "global_id", "r", "Core number times the threads per core, plus thread number; without the tile.">;
def CR_CYCLES_LOW      : ControlRegister<4, "cycles_low", "r", "Cycles since reset, bits 31:0.">;
def CR_CYCLES_HIGH     : ControlRegister<5, "cycles_high", "r", "Cycles since reset, bits 63:32.">;
def CR_THREAD_ENABLE   : ControlRegister<6, "thread_enable", "r", "Threads that can fetch now, one bit each.">;
def CR_DATA_MISSES     : ControlRegister<7, "data_misses", "r", "Misses of the data cache.">;
def CR_INST_MISSES     : ControlRegister<8, "instruction_misses", "r", "Misses of the instruction cache.">;
def CR_PC              : ControlRegister<9, "pc", "r", "Fetch address of the thread, ahead of execution.">;
def CR_TRAP_REASON     : ControlRegister<10, "trap_reason", "r", "Reason of the last trap.">;
def CR_THREAD_STATUS   : ControlRegister<11, "thread_status", "rw", "Status of the thread, low 3 bits.">;
def CR_ARGC            : ControlRegister<12, "argc", "rw", "Number of arguments; shared by the core.">;
def CR_ARGV            : ControlRegister<13, "argv", "rw", "Address of the arguments, then of the result; shared by the core.">;
def CR_THREADS         : ControlRegister<14, "threads", "r", "Number of threads per core.">;
def CR_BLOCKED_CYCLES  : ControlRegister<15, "blocked_cycles", "r", "Cycles this thread waited for memory.">;
def CR_KERNEL_CYCLES   : ControlRegister<16, "kernel_cycles", "r", "Cycles with a thread running or at a barrier.">;
def CR_CPU_CONTROL     : ControlRegister<17, "cpu_control", "r", "Bit 31: write-through; the host writes it.">;
def CR_POWER_MODEL     : ControlRegister<18, "power_model", "r", "Reads 0.">;
def CR_NON_COHERENT    : ControlRegister<19, "non_coherent", "w", "Non-coherent regions of the many-core system.">;
foreach n = 0...15 in
  def CR_DEBUG#n : ControlRegister<!add(20, n), "debug"#n, "rw", "For debuggers; shared by the core.">;

class TrapReason<int value, string name> {
  int Value = value;
  string Name = name;
}

def TRAP_NONE                  : TrapReason<0, "none">;
def TRAP_SCRATCHPAD_MISALIGNED : TrapReason<0x40, "scratchpad_misaligned">;
def TRAP_MEMORY_MISALIGNED     : TrapReason<0x80, "memory_misaligned">;

class ThreadStatus<int value, string name> {
  int Value = value;
  string Name = name;
}

def STATUS_IDLE    : ThreadStatus<0, "idle">;
def STATUS_RUNNING : ThreadStatus<1, "running">;
def STATUS_END     : ThreadStatus<2, "end">;
def STATUS_TRAPPED : ThreadStatus<3, "trapped">;
def STATUS_BARRIER : ThreadStatus<4, "barrier">;
def STATUS_BOOTING : ThreadStatus<5, "booting">;
