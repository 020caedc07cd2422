# Acquires the lock of atomic operations between cores: a bakery whose words are written through the
# directory and read from memory. docs/atomics.md proves its correctness. This is assembly because
# the order and the addresses of its accesses matter.
#
# The lock has a line for each of sixteen tiles, whose first word is 0 if the core is idle, 1 or 2
# while the core chooses its number or holds the lock without contention, and otherwise its number.
# Only the core itself writes its line. The lines fill a unit of 4 MiB.
#
# The unit is coherent while a core writes its line: `dcache_inv` moves the line to the second level,
# and `flush` writes it to memory from there. The `flush` must not meet an eviction of the line that
# is on its way, for which `dcache_inv` does not wait. So the core stores to another line of the same
# home first, OTHER_LINE bytes away (a constant of the compiler): that store misses, and completes
# after the eviction.
#
# The unit is non-coherent (region 7 of the core) while the core reads: loads then go to memory. No
# line of the unit may be in the data cache when the region changes, and no store to a non-coherent
# line may miss. A change of the region takes effect two instructions later, and applies to accesses
# that have not left the thread's queue: a load before the change orders it after the earlier
# accesses.
#
#   s0    out: address of the core's word, to which the release writes 0 as `publish` does
#   s1    out: address of the thread's flag in the lock of the core

__npu_machine_enter:
        addi            sp, sp, -64
        store32         ra, (sp)
        move_i32        s0, sp
        jmpsr           __npu_atomic_enter      # it reads a word of the stack
        move_i32        s1, s0
        movei           s11, 0
        leah            s3, __npu_machine_lock
        leal            s3, __npu_machine_lock
        read_cr         s2, s11                 # the tile: control register 0
        shri            s4, s3, 22
        shli            s5, s4, 11              # the first unit
        shli            s8, s4, 1               # the last unit
        or_i32          s5, s5, s8
        moveih          s6, 0xe0                # region 7, not valid
        moveil          s6, 0
        or_i32          s5, s5, s6
        addi            s5, s5, 1               # valid
        movei           s7, 19                  # the control register of non-coherent regions
        shli            s4, s2, 6
        shri            s8, s1, 6
        add_i32         s0, s3, s4              # the core's word
        movei           s13, OTHER_LINE
        shli            s8, s8, 6               # the line of the core's lock
        add_i32         s2, s0, s13             # the core's other line

# Announces the core. Bit 0 of the word at offset 60 of the core's lock alternates between 1 and 2.
again:  load32          s9, 60(s8)
        xori            s9, s9, 1
        store32         s9, 60(s8)
        addi            s12, s9, 1
        jmpsr           publish

# Finds the highest word of the others. The core has the lock if it is 0.
        move_i32        s4, s3
        movei           s10, 16
        movei           s14, 0
number: xor_i32         s15, s4, s0
        beqz            s15, less
        load32          s13, (s4)
        dcache_inv      s4
        cmpgt_i32       s15, s13, s14
        beqz            s15, less
        move_i32        s14, s13
less:   addi            s4, s4, 64
        addi            s10, s10, -1
        bnez            s10, number
        bnez            s14, choose

# Ends the non-coherent region.
done:   load32          ra, (sp)
        addi            s13, ra, 0
        write_cr        s6, s7
        addi            sp, sp, 64
        movei           s13, 0
        jret

# Contention: takes a number above all others.
choose: movei           s13, 2
        cmpgt_i32       s15, s14, s13
        bnez            s15, above
        movei           s14, 2
above:  addi            s12, s14, 1
        load32          s13, (sp)
        addi            s13, s13, 0
        write_cr        s6, s7
        shri            s13, s12, 27
        bnez            s13, withdraw
        jmpsr           publish

# Waits for each core that chooses, or has a lower number, or has the same number and is a lower
# tile. The reads of waiting cores could occupy memory and starve the holder in the network, so a
# core pauses for eight times as long as its last read took.
        move_i32        s4, s3
        movei           s10, 16
        movei           s14, 4                  # the cycle counter
look:   xor_i32         s15, s4, s0
        beqz            s15, next
        read_cr         s9, s14
        load32          s13, (s4)
        dcache_inv      s4
        cmplt_i32       s15, s4, s0
        beqz            s13, next
        andi            s15, s15, 1
        add_i32         s15, s15, s12
        cmplt_i32       s15, s13, s15
        beqz            s15, next
        read_cr         s13, s14
        sub_i32         s13, s13, s9
        shli            s13, s13, 20            # at most 4095, and not 0
        shri            s13, s13, 20
        ori             s13, s13, 1
pause:  addi            s13, s13, -1            # leaves memory and the network to the holder
        bnez            s13, pause
        jmp             look
next:   addi            s4, s4, 64
        addi            s10, s10, -1
        bnez            s10, look
        jmp             done

# The numbers are too high. They start again when all cores with such numbers have left.
withdraw:
        store32         s11, (s0)
        dcache_inv      s0
        store32         s11, (s2)
        dcache_inv      s2
        flush           s0
        movei           s13, 16
rest:   addi            s13, s13, -1
        bnez            s13, rest
        jmp             again

# Stores s12 to the core's word and reads memory until it has arrived there. The unit is coherent at
# the start, and non-coherent at the end.
publish:
        store32         s12, (s0)
        dcache_inv      s0
        store32         s11, (s2)
        dcache_inv      s2
        flush           s0
        load32          s13, (sp)
        addi            s13, s13, 0
        write_cr        s5, s7
        movei           s13, 3
arrive: addi            s13, s13, -1            # time for the write to reach memory first
        bnez            s13, arrive
check:  load32          s13, (s0)
        dcache_inv      s0
        xor_i32         s13, s13, s12
        bnez            s13, check
        jret
