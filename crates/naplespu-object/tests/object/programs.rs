//! Tests of the start-up code: constructors, the scratchpad, and thread-local storage, on one
//! thread and on eight.

use crate::common::{address, assembled, compiled, isa, linked, run, words};
use npu_link::{LinkOptions, MemoryLayout};

/// Two constructors, data in two objects, and a scratchpad section in each.
const FIRST: &str = "
        .globl main
main:   movei s50, 0
        read_cr s50, s50                # the tile
        movei s51, 2
        read_cr s51, s51                # the thread
        lea s52, built                  # what a constructor made, on every thread
        load32 s52, (s52)
        lea s53, near
        load32_scratchpad s54, (s53)
        add_i32 s52, s52, s54
        lea s53, far
        load32_scratchpad s54, (s53)
        add_i32 s52, s52, s54
        lea s53, results
        mulli s54, s51, 64
        add_i32 s53, s53, s54
        store32 s52, (s53)
        jret
construct:
        lea s0, built
        load32 s1, (s0)
        mulli s1, s1, 3
        store32 s1, (s0)
        jret
        .section .init_array, \"aw\"
        .long construct
        .data
        .globl built
built:  .long 5
        .section scratchpad, \"aw\"
near:   .long 1000
        .bss
        .balign 64
        .globl results
results: .zero 512
";

const SECOND: &str = "
construct:
        lea s0, built
        load32 s1, (s0)
        addi s1, s1, 1
        lea s2, seven
        load32 s2, (s2)
        add_i32 s1, s1, s2
        store32 s1, (s0)
        jret
        .section .init_array, \"aw\"
        .long construct
        .section .rodata, \"a\"
seven:  .long 7
        .section scratchpad, \"aw\"
        .globl far
        .long 0
far:    .long 20000
";

#[test]
fn data_constructors_and_the_scratchpad() {
    for threads in [1, 8] {
        let options = LinkOptions {
            threads,
            ..LinkOptions::default()
        };
        let program = linked(&[assembled(FIRST), assembled(SECOND)], &mut [], &options).unwrap();
        let machine = run(&program, threads);
        let results = words(&machine, &program, "results", 128);
        for thread in 0..threads as usize {
            // In the order of the objects: 5 * 3, then + 1 + 7.
            assert_eq!(results[16 * thread], 23 + 1000 + 20000, "thread {thread} of {threads}");
        }
        assert_eq!(words(&machine, &program, "built", 1), [23]);
        assert_eq!(machine.scratchpad()[..4], 1000u32.to_le_bytes());
    }
}

/// Each thread counts in its own copy, which starts with the initial value.
const COUNTS: &str = "
function %main() system_v {
    gv0 = symbol colocated tls %counter
    gv1 = symbol colocated %results
    fn0 = %thread() -> i32 system_v
block0:
    v0 = tls_value.i32 gv0
    v1 = call fn0()
    v2 = load.i32 v0
    v3 = iadd v2, v1
    store v3, v0
    v4 = symbol_value.i32 gv1
    v5 = iconst.i32 6
    v6 = ishl v1, v5
    v7 = iadd v4, v6
    v8 = load.i32 v0
    store v8, v7
    return
}
";

const COUNTER: &str = "
        .globl thread
thread: movei s0, 2
        read_cr s0, s0
        jret
        .section .tdata, \"aw\"
        .long 1
        .globl counter
counter: .long 40
        .bss
        .balign 64
        .globl results
results: .zero 512
";

#[test]
fn thread_local_storage() {
    for threads in [1, 8] {
        let options = LinkOptions {
            threads,
            ..LinkOptions::default()
        };
        let files = [compiled("counts.clif", COUNTS, &isa(&[]), false), assembled(COUNTER)];
        let program = linked(&files, &mut [], &options).unwrap();
        let machine = run(&program, threads);
        let results = words(&machine, &program, "results", 128);
        for thread in 0..threads {
            assert_eq!(
                results[16 * thread as usize],
                40 + thread,
                "thread {thread} of {threads}"
            );
        }
    }
}

#[test]
fn layouts() {
    let text = "        .globl main\nmain: jret\n        .data\n        .globl x\nx: .long 3\n";
    for layout in [
        MemoryLayout::DEFAULT,
        MemoryLayout::ALVEO,
        MemoryLayout {
            code: 0x10_0000,
            data: 0x3000,
            stacks: 0x20_0000,
            stack_size: 0x1000,
        },
    ] {
        let options = LinkOptions {
            layout,
            ..LinkOptions::default()
        };
        let linked = linked(&[assembled(text)], &mut [], &options);
        if layout.data < layout.code {
            // The data follows the code if its address is already taken.
            let program = linked.unwrap();
            assert!(address(&program, "x") > layout.code);
            continue;
        }
        let program = linked.unwrap();
        assert_eq!(program.entry, layout.code);
        assert_eq!(address(&program, "x"), layout.data);
        run(&program, 1);
    }
    let on_code = MemoryLayout {
        stacks: MemoryLayout::DEFAULT.code - 0x400,
        ..MemoryLayout::DEFAULT
    };
    let options = LinkOptions {
        layout: on_code,
        ..LinkOptions::default()
    };
    let errors = linked(&[assembled(text)], &mut [], &options).unwrap_err();
    assert!(errors[0].to_string().contains("overlaps the stacks"), "{}", errors[0]);
}

#[test]
fn branches_go_through_veneers() {
    // 160 KiB between the call and each of two functions, one before it and one after it.
    let first = "        .globl early\nearly: movei s0, 3\n        jret\n        .zero 163840\n";
    let call = "
        .globl main
main:   addi sp, sp, -64
        store32 ra, 60(sp)
        jmpsr early
        move_i32 s50, s0
        jmpsr late
        add_i32 s50, s50, s0
        jmpsr late
        add_i32 s50, s50, s0
        lea s1, out
        store32 s50, (s1)
        load32 ra, 60(sp)
        addi sp, sp, 64
        jret
        .data
        .globl out
out:    .long 0
";
    let last = "        .zero 163840\n        .globl late\nlate: movei s0, 40\n        jret\n";
    let files = [assembled(first), assembled(call), assembled(last)];
    let program = linked(&files, &mut [], &LinkOptions::default()).unwrap();
    assert_eq!(words(&run(&program, 1), &program, "out", 1), [83]);
}
