//===- NaplesPUErrata.td - where the machine differs from its own design ----===//
//
// One record for each hardware fault that affects compiled code. The compiler works around all of
// them. The text of a work-around that does not cover every program begins with "In part:". If a
// work-around needs code, a setting `erratum_<name>` can turn it off. All other work-arounds are
// built in (a register that is never allocated, an instruction that is never selected); for them
// the record is documentation.
//
//===----------------------------------------------------------------------===//

class Erratum<string name> {
  string Name = name;
  string Summary = "";     // one line
  string Effect = "";      // effect on a program without the work-around
  string WorkAround = "";  // what the compiler does
  bit isSetting = false;   // whether a setting can turn the work-around off; it is on by default
  string Reference = "";
  // The affected operations of instructions; empty if the erratum does not concern operations.
  // `onVectorsOnly` restricts the erratum to instructions that read a vector, `OnUnit` to
  // instructions on one memory.
  list<HwOp> Operations = [];
  bit onVectorsOnly = false;
  HwUnit OnUnit = ?;
}

def ErratumMaskAlwaysApplied : Erratum<"mask_always_applied"> {
  let Summary = "The lane mask applies to every vector instruction, whatever its mask bit says.";
  let Effect = "A move, spill or reload of a vector loses the lanes that are disabled in rm.";
  let WorkAround = "rm is all ones between any two instructions of the compiler; a masked operation sets rm, executes and restores rm as one unit.";
  let Reference = "docs/machine/formats.md";
}

def ErratumVectorWriteTo59 : Erratum<"vector_write_to_59"> {
  let Summary = "A write to v59 replaces the lane mask.";
  let Effect = "The low half of lane 0 becomes the mask, at a time no scoreboard tracks.";
  let WorkAround = "v59 is never allocated.";
  let Reference = "docs/machine/registers.md";
}

def ErratumHalfWriteToMask : Erratum<"half_write_to_mask"> {
  let Summary = "moveih rm clears the lane mask.";
  let Effect = "The mask takes the low half of the result bus, which is 0, while rm itself keeps its low half.";
  let WorkAround = "rm is always written as a whole, by move_i32 or movei.";
  let Reference = "docs/machine/operations.md";
  let Operations = [MVI_MOVEIH];
}

def ErratumIndirectCallLink : Erratum<"indirect_call_link"> {
  let Summary = "jmpsr through a register saves the target's address plus 4 as return address.";
  let Effect = "The callee returns into itself.";
  let WorkAround = "An indirect call sets ra with addi ra, pc, 8 and jumps with jmp.";
  let isSetting = true;
  let Reference = "docs/machine/control.md";
  let Operations = [JBA_JMPSR];
}

def ErratumLostResult : Erratum<"lost_result_before_taken_branch"> {
  let Summary = "A pending result is forgotten if a taken branch issues in the cycle after the instruction that computes it.";
  let Effect = "If the result is late, an instruction at the branch target that reads the register gets the old value. An instruction there that writes the register has its own result overwritten by the late one. Late results are float results with a latency of 11 cycles or more, results of scratchpad loads, and results of loads that miss. All other results except those of float compares are late while float results of any thread occupy the write port. A call can lose its return address in the same way.";
  let WorkAround = "An instruction of another kind is placed between such an instruction and a branch, unless the branch reads the result. (A nop does not issue and is not enough.) This includes integer results in functions with float instructions, if one of the first instructions at the target accesses the register. A call waits if four float results may be pending. Not covered: float results of other threads that delay an integer result of a function without float instructions, or a return address.";
  let isSetting = true;
  let Reference = "docs/machine/pipeline.md";
}

def ErratumFloatCompareValue : Erratum<"float_compare_value"> {
  let Summary = "A scalar float compare returns 0xFFFF for true.";
  let Effect = "The result is not the 1 of an integer compare.";
  let WorkAround = "The result is masked with 1 if its value matters, not only whether it is zero.";
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_CMPFEQ, RR_CMPFNE, RR_CMPFGT, RR_CMPFGE, RR_CMPFLT, RR_CMPFLE];
}

def ErratumFloatCompareOrder : Erratum<"float_compare_order"> {
  let Summary = "Float compares order bit patterns: negative numbers are in reverse order, -0 is below +0, and a NaN is treated as a number.";
  let Effect = "-1 < -2 is true and -0 == +0 is false.";
  let WorkAround = "Float compares are expanded to integer compares of transformed operands.";
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_CMPFEQ, RR_CMPFNE, RR_CMPFGT, RR_CMPFGE, RR_CMPFLT, RR_CMPFLE];
}

def ErratumFtoi128 : Erratum<"ftoi_128_to_255"> {
  let Summary = "ftoi returns 0 for a number from 128 to 255.";
  let Effect = "Conversions of numbers with a magnitude in that range are wrong, for either sign.";
  let WorkAround = "The range is converted through integer operations on the bit pattern.";
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_FTOI];
}

def ErratumItofCarry : Erratum<"itof_carry"> {
  let Summary = "itof loses the carry into the exponent when rounding overflows the significand.";
  let Effect = "33554431, 67108863 and similar numbers are converted to half of their value, 67108859 and similar numbers to twice their value.";
  let WorkAround = "The integer is rounded to 24 significant bits before the conversion.";
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_ITOF];
}

def ErratumPackedVectorLoads : Erratum<"packed_vector_loads"> {
  let Summary = "Vector loads of bytes and half-words from main memory read the wrong bytes.";
  let Effect = "Lane i gets the low byte or half of word i of the cache line instead of element i.";
  let WorkAround = "load_v16i8, load_v16i16 and their unsigned forms are not used; the words of the line are loaded, shuffled to their lanes and shifted.";
  let isSetting = true;
  let Reference = "docs/machine/memory.md";
  let Operations = [MEM_LOAD_V16I8, MEM_LOAD_V16I16, MEM_LOAD_V16U8, MEM_LOAD_V16U16];
  let OnUnit = UnitLSU;
}

def ErratumVectorStoreUnmasked : Erratum<"main_memory_vector_store_unmasked"> {
  let Summary = "Vector stores to main memory ignore the lane mask.";
  let Effect = "All 16 lanes are written.";
  let WorkAround = "A masked store loads the old value, merges and stores all lanes.";
  let isSetting = true;
  let Reference = "docs/machine/memory.md";
  let Operations = [MEM_STORE_V16I8, MEM_STORE_V16I16, MEM_STORE_V16I32];
  let OnUnit = UnitLSU;
}

def ErratumScratchpadEmptyMask : Erratum<"scratchpad_empty_mask"> {
  let Summary = "A vector access to the scratchpad with an empty lane mask never completes.";
  let Effect = "The thread hangs at the next use of the loaded register.";
  let WorkAround = "A branch skips a masked scratchpad access if its mask is empty.";
  let isSetting = true;
  let Reference = "docs/machine/memory.md";
  let Operations = [MEM_LOAD_V16I8, MEM_LOAD_V16I16, MEM_LOAD_V16I32, MEM_LOAD_V16U8, MEM_LOAD_V16U16,
                    MEM_STORE_V16I8, MEM_STORE_V16I16, MEM_STORE_V16I32];
  let OnUnit = UnitSPM;
}

def ErratumGatherScatter : Erratum<"gather_scatter_missing"> {
  let Summary = "Gather and scatter do not exist.";
  let Effect = "loadg32 writes 0 to a scalar register, stores32 stores one scalar 16 times.";
  let WorkAround = "They are expanded to scalar accesses.";
  let Reference = "docs/machine/memory.md";
  let Operations = [MEM_LOADG_I32, MEM_STORES_32];
}

def ErratumCrossProduct : Erratum<"cross_product_missing"> {
  let Summary = "The cross product is issued to a unit that does not exist.";
  let Effect = "The destination stays busy forever; its next use hangs the thread.";
  let WorkAround = "crp is never emitted.";
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_CRP];
}

def ErratumShiftAmount : Erratum<"shift_amount_not_modulo"> {
  let Summary = "Shift amounts are not taken modulo 32.";
  let Effect = "shl and shr by 32 or more return 0; ashr by 33 or more shifts zeros into the sign bits.";
  let WorkAround = "The amount is masked with 31 unless it is known to be below 32.";
  let isSetting = true;
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_ASHR, RR_SHR, RR_SHL];
}

def ErratumVectorCompareUpperHalf : Erratum<"vector_compare_upper_half"> {
  let Summary = "An integer compare with a vector operand leaves bits 31:16 of its scalar result undefined.";
  let Effect = "A test of the whole register sees garbage.";
  let WorkAround = "The result is masked with 0xFFFF before it is tested or used as a number.";
  let isSetting = true;
  let Reference = "docs/machine/operations.md";
  let Operations = [RR_CMPEQ, RR_CMPNE, RR_CMPGT, RR_CMPGE, RR_CMPLT, RR_CMPLE,
                    RR_CMPUGT, RR_CMPUGE, RR_CMPULT, RR_CMPULE];
  let onVectorsOnly = true;
}

def ErratumVectorResultIn63 : Erratum<"vector_result_in_63"> {
  let Summary = "A register-register result in v63 is taken for a jump.";
  let Effect = "The program counter changes.";
  let WorkAround = "v63 is never allocated.";
  let Reference = "docs/machine/operations.md";
}

def ErratumRepeatedLineMiss : Erratum<"repeated_instruction_line_miss"> {
  let Summary = "A thread can hang while it waits for an instruction line that another thread requested.";
  let Effect = "Requests for instruction lines go through a ring of eight entries. An entry keeps its line number after the answer. A thread that misses a line with a pending request joins the entry whose index is the OR of the indices of all entries with that line. The OR is wrong if the line was requested a short time before and replaced since, and its old entry is among the last seven: then, unless each bit of the old index is set in the new one, the thread joins an entry that is never answered again. It never fetches again. The thread that made the request continues. In most cases a line is replaced only when a third line of its set is fetched: no contiguous program of at most 4096 bytes was seen to hang.";
  let WorkAround = "In part: the code for rare arguments of the large float routines is in separate routines, so a loop that calls a few of the large ones can stay below 4096 bytes. A loop of several threads can hang if its code occupies three lines of one set of the instruction cache, unless the program is linked with `clif-util link --text-per-thread`: then no two threads share a line, except in functions that are called by address. Timed calls of the JIT give each thread of a core a copy of such code. The timing model hangs in the same programs and in the same cycle as the hardware, and reports the erratum.";
  let Reference = "docs/machine/pipeline.md";
}

//===----------------------------------------------------------------------===//
// Several cores
//===----------------------------------------------------------------------===//

def ErratumInvalidationOfSharedLine : Erratum<"invalidation_of_read_line"> {
  let Summary = "dcache_inv of a line that the core has only read never completes, with several tiles.";
  let Effect = "The thread hangs at its next access to memory. The controller of the mesh has no transition for the instruction in state S. Modified and absent lines are not affected.";
  let WorkAround = "In part: code of the compiler executes dcache_inv only after a store to the same line, or in a non-coherent region. Programs that call the intrinsic must do the same. `sim --strict` with several cores reports it.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumFlushOfSharedLine : Erratum<"flush_of_shared_line"> {
  let Summary = "A flush of a line that other cores share and this core does not hold breaks the line's directory entry.";
  let Effect = "The next store to the line waits for acknowledgments that no core sends.";
  let WorkAround = "In part: code of the compiler flushes no shared line. Programs must not flush a line that other cores read. `sim --strict` reports a flush of a line that another core may share and this core may not hold.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumEvictionDuringLoad : Erratum<"eviction_during_load"> {
  let Summary = "An eviction or dcache_inv of a modified line while the load of another core is on its way corrupts the directory.";
  let Effect = "A core hangs at its next store to the line, or another line of the same home tile loses its data.";
  let WorkAround = "In part: with atomics=machine each line of the lock has one core that accesses it through the directory, and each atomic operation gives its lines back under the lock, so no core loads a line that another one has modified. Plain accesses of several cores to the same line are not covered. `sim --strict` reports a modified line that may leave the data cache, by an eviction or dcache_inv, without a barrier between that and the load of another core.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumEvictionDuringStore : Erratum<"eviction_during_store"> {
  let Summary = "A core that evicts a line drops an earlier request of the directory for the line.";
  let Effect = "The core that stores to the line hangs. The acknowledgment of the eviction, on the response network, has overtaken the request, on the forward network.";
  let WorkAround = "In part: with atomics=machine no core has a copy of an atomic line when another one stores to it. Plain accesses of several cores to the same line are not covered. `sim --strict` reports a store to a line that another core may evict at the same time.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumLateAcknowledgment : Erratum<"late_acknowledgment"> {
  let Summary = "A store that invalidates two or more sharers can complete early if the same core has invalidated fewer sharers by an earlier store to the word.";
  let Effect = "Late acknowledgments make a shared copy writable. Cores keep old copies of the line for ever.";
  let WorkAround = "In part: with atomics=machine no line of the lock or of an atomic operation has a sharer when a core stores to it. Plain accesses of several cores to the same line are not covered. `sim --strict` with four or more cores reports a store that may invalidate the copies of two or more other cores, and more copies than an earlier store of the core to the word.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumBarrierWithoutMaster : Erratum<"barrier_without_master"> {
  let Summary = "A barrier whose number names a tile without a core never completes.";
  let Effect = "All its threads hang: only tiles with a core have a sync master.";
  let WorkAround = "In part: the start-up code uses a barrier of tile 0. Programs must use numbers of tiles with a core. The simulator reports others.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumNonCoherentReload : Erratum<"non_coherent_reload"> {
  let Summary = "In a non-coherent region, a load directly after the dcache_inv or eviction of a modified line returns the old value.";
  let Effect = "The read overtakes the write on its way to memory.";
  let WorkAround = "In part: the lock of atomics=machine reads its word until it has the stored value. Programs with non-coherent regions must do the same. `sim --strict` reports a read without a barrier.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumNonCoherentStoreMiss : Erratum<"non_coherent_store_miss"> {
  let Summary = "A store to a line of a non-coherent region that misses and replaces another line breaks the controller of the data cache.";
  let Effect = "When the replaced line has been acknowledged, each later miss of the core hangs its thread. The victim can be clean, modified or non-coherent. A load that misses has no such effect, and neither has a store that hits.";
  let WorkAround = "In part: the lock of atomics=machine stores to its lines only while they are coherent. Programs with non-coherent regions can load a line before they store to it, if no other thread of the core can evict it in between. `sim --strict` reports a store to a line that the core may not have, if its set may have another line.";
  let Reference = "docs/machine/several-cores.md";
}

def ErratumEvictionBeforeNonCoherent : Erratum<"eviction_before_non_coherent_load"> {
  let Summary = "A load of a line that became non-coherent while the line's eviction as a coherent one is on its way can hang.";
  let Effect = "The thread hangs. A dcache_inv does not wait for an eviction that is on its way.";
  let WorkAround = "In part: the lock of atomics=machine makes its lines non-coherent after a store to another line of the same home, which completes after the eviction. Programs that change regions must do the same. `sim --strict` reports a load after an eviction without such a store or a barrier.";
  let Reference = "docs/machine/several-cores.md";
}
