# The start-up code: it runs before and after `main` on every thread (`docs/machine/control.md`).
# The linker defines the symbols with `__npu_`.
        .text
        .globl  _start
        .type   _start, @function
_start: movei   rm, 65535
        movei   s50, BOOTING
        movei   s51, CR_STATUS
        write_cr s50, s51

        # Continue in the thread's own copy of the instructions, if it has one.
        movei   s51, CR_THREAD
        read_cr s53, s51
        lea     s52, __npu_copy_bytes
        mull_i32 s52, s52, s53
        addi    s51, pc, 12
        add_i32 s51, s51, s52
        jmp     s51

        # The stack: the stacks of the threads of all tiles are adjacent, or those of each tile are
        # in its memory. `s54` is the number of the thread over all tiles. Lines that start with
        # `#tile` and lines that end in `# adjacent` are for one of both.
        movei   s51, CR_TILE
        read_cr s52, s51
        lea     s54, __npu_tile_threads
        mull_i32 s54, s52, s54
        add_i32 s54, s54, s53
        lea     s51, __npu_stack_size
        addi    s55, s54, 1             # adjacent
#tile        addi    s55, s53, 1
        mull_i32 s51, s51, s55
        lea     sp, __npu_stacks
        add_i32 sp, sp, s51
#tile        lea     s51, __npu_tile_bytes
#tile        mull_i32 s51, s51, s52
#tile        add_i32 sp, sp, s51
        move_i32 fp, sp

        # Thread-local storage: each thread copies the initial values to its own block.
        lea     s0, __npu_tls_image
        lea     s1, __npu_tls_bytes
        lea     s2, __npu_tls_start
        lea     s3, __npu_tls_size
        mull_i32 s3, s3, s54
        add_i32 s2, s2, s3
        add_i32 s1, s0, s1
        jmp     2f
1:      load32  s3, (s0)
        store32 s3, (s2)
        addi    s0, s0, 4
        addi    s2, s2, 4
2:      cmpult_i32 s3, s0, s1
        bnez    s3, 1b

        # Thread 0 of each tile fills the scratchpad. Thread 0 of the first tile calls the
        # constructors. The other threads wait for both.
        bnez    s53, 7f
        lea     s0, __scratchpad_data_start
        lea     s1, __scratchpad_data_end
        movei   s2, 0
        jmp     4f
3:      load32  s3, (s0)
        store32_scratchpad s3, (s2)
        addi    s0, s0, 4
        addi    s2, s2, 4
4:      cmpult_i32 s3, s0, s1
        bnez    s3, 3b
        bnez    s52, 7f
        lea     s56, __init_array_start
        lea     s57, __init_array_end
        jmp     6f
5:      load32  s3, (s56)
        addi    ra, pc, 8               # a call through a register leaves the wrong return address
        jmp     s3
        addi    s56, s56, 4
6:      cmpult_i32 s3, s56, s57
        bnez    s3, 5b
7:      lea     s1, __npu_waiting
        beqz    s1, 8f
        lea     s0, __npu_start_barrier
        subi    s1, s1, 1
        barrier s0, s1

8:      movei   s51, CR_ARGC
        read_cr s0, s51
        movei   s51, CR_ARGV
        read_cr s1, s51
        movei   s50, RUNNING
        movei   s51, CR_STATUS
        write_cr s50, s51
        lea     s51, __npu_entry
        lea     s52, __npu_copy_bytes
        mull_i32 s52, s52, s53
        add_i32 s51, s51, s52
        addi    ra, pc, 8
        jmp     s51

        # The result, by convention an address, is for the host, which counts the lines that are
        # written back.
        movei   s51, CR_ARGV
        write_cr s0, s51
        moveih  s50, END_LINE >> 16
        moveil  s50, END_LINE & 0xffff
        movei   s51, 0
        store32 s51, (s50)
        flush   s50
        movei   s50, ENDED
        movei   s51, CR_STATUS
        write_cr s50, s51
        jmp     .
        .size   _start, . - _start
