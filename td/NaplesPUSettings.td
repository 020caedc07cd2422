//===- NaplesPUSettings.td - settings of the target --------------------------===//
//
// The settings in addition to Cranelift's shared flags and the errata. Each record becomes a field
// of the compiler's `TargetSettings`, a line of `clif-util isa settings` and a name that `--set`,
// `target` lines and `Builder::set` accept.
//
//===----------------------------------------------------------------------===//

class Setting<string name, string summary> {
  string Name = name;
  string Summary = summary; // what it does, without a full stop
}

class BoolSetting<string name, bit default, string summary> : Setting<name, summary> {
  bit Default = default;
}

// A number from Min to Max, both included.
class NumberSetting<string name, int min, int max, int default, string summary>
    : Setting<name, summary> {
  int Min = min;
  int Max = max;
  int Default = default;
}

class SettingValue<string name, string summary> {
  string Name = name;
  string Summary = summary;
}

// One of several names; the first is the default.
class EnumSetting<string name, list<SettingValue> values, string summary>
    : Setting<name, summary> {
  list<SettingValue> Values = values;
}

def SettingStrictFloat : BoolSetting<"strict_float", false,
    "IEEE 754 floats through the runtime instead of the float unit's arithmetic">;

def SettingThreads : NumberSetting<"threads", 1, THREADS_PER_CORE.Value, THREADS_PER_CORE.Value,
    "hardware threads per core">;

def SettingScratchpadBytes : NumberSetting<"scratchpad_bytes", 1, SCRATCHPAD_SIZE.Value, SCRATCHPAD_SIZE.Value,
    "bytes of scratchpad memory per core">;

def SettingHasFpu : BoolSetting<"has_fpu", true, "the core has a float unit">;

def AtomicsCore : SettingValue<"core", "The threads of a core exclude one another by a lock of the runtime; threads of different cores do not.">;
def AtomicsMachine : SettingValue<"machine",
    "Threads of all cores exclude one another, under the rules of docs/atomics.md.">;
def AtomicsRefuse : SettingValue<"refuse", "All atomic operations except loads, stores and fences of at most a word are refused.">;
def AtomicsSingleThread : SettingValue<"single_thread",
    "Atomic operations are plain sequences, as if no other thread accessed the memory.">;

def SettingAtomics : EnumSetting<"atomics", [AtomicsCore, AtomicsMachine, AtomicsSingleThread, AtomicsRefuse],
    "which threads atomic operations are atomic for">;

// The size is defined in src/regalloc.rs: instructions, blocks and live values. At the default size
// the backtracking allocator takes about a second; above it, twice the size takes four times as
// long.
def SettingSinglePassAbove : NumberSetting<"single_pass_above", 0, 0x7fffffff, 100000,
    "size from which `single_pass` allocates the registers of a function, regardless of `regalloc_algorithm`; 0: never">;

def SettingLoopChecker : BoolSetting<"loop_checker", false,
    "check the claims of the loop passes independently; always on in debug builds of the compiler">;

// A pass that produces invalid CLIF is a fault of the compiler. Builds with debug assertions verify
// after every pass.
def SettingVerifyPasses : BoolSetting<"verify_passes", false,
    "verify CLIF before optimization and after each pass that changed it">;
