//===- NaplesPUSettings.td - settings of the target --------------------------===//
//
// What can be set beside Cranelift's shared flags and the errata. Each record becomes a
// field of the compiler's `TargetSettings`, a line of `clif-util isa settings` and a name
// that `--set`, `target` lines and `Builder::set` take.
//
//===----------------------------------------------------------------------===//

class Setting<string name, string summary> {
  string Name = name;
  string Summary = summary; // what it does, without a full stop
}

class BoolSetting<string name, bit default, string summary> : Setting<name, summary> {
  bit Default = default;
}

// A number, both ends included.
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

// One of several names, the first unless set.
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
    "Threads of all cores exclude one another; the caches of the cores have to be coherent.">;
def AtomicsRefuse : SettingValue<"refuse", "All but loads, stores and fences of at most a word are refused.">;
def AtomicsSingleThread : SettingValue<"single_thread",
    "They are plain sequences, as if no other thread touched the memory.">;

def SettingAtomics : EnumSetting<"atomics", [AtomicsCore, AtomicsMachine, AtomicsSingleThread, AtomicsRefuse],
    "which threads atomic operations are atomic for">;

// The size is that of src/regalloc.rs: instructions, blocks and live values. A function of this size takes about a second
// with the other allocator, and from there on it takes four times as long for twice the size.
def SettingSinglePassAbove : NumberSetting<"single_pass_above", 0, 0x7fffffff, 100000,
    "size of a function from which on `single_pass` allocates its registers, whatever `regalloc_algorithm` says; 0: never">;

def SettingLoopChecker : BoolSetting<"loop_checker", false,
    "check what the passes over loops claim, independently of them; always on in debug builds of the compiler">;

// A pass that leaves invalid CLIF is a fault of the compiler. Builds with debug assertions look after every pass.
def SettingVerifyPasses : BoolSetting<"verify_passes", false,
    "CLIF is verified ahead of optimization and after each pass that changed it">;
