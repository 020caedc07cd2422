//! Tests of programs with a copy of all instructions for each thread: every thread behaves the
//! same, in its own copy.

use crate::common::{address, assembled, compiled, image, isa, linked, run, words};
use npu_link::{LinkOptions, MemoryLayout, Program};
use npu_mc::machine::CACHE_LINE;
use npu_sim::{Halt, Machine, NoSink, Timing, TimingConfig};

fn options(threads: u32) -> LinkOptions {
    LinkOptions {
        threads,
        text_per_thread: true,
        ..LinkOptions::default()
    }
}

/// Returns the address and size of a section.
fn section(program: &Program, name: &str) -> Option<(u32, u32)> {
    let found = program.sections.iter().find(|own| own.name == name)?;
    Some((found.address, found.size))
}

/// Each thread stores its own address, that of `f`, a pointer to `f`, a word of the data, and the
/// target of a call through the pointer.
const REPORT: &str = "
        .globl main
        .type main, @function
main:   move_i32 s55, ra
        movei   s50, 2
        read_cr s50, s50                # the thread
        lea     s51, results
        mulli   s52, s50, 64
        add_i32 s51, s51, s52
        addi    s53, pc, 0
        store32 s53, (s51)
        jmpsr   f
        store32 s0, 4(s51)
        lea     s54, f
        store32 s54, 8(s51)
        lea     s52, number
        load32  s52, (s52)
        store32 s52, 12(s51)
        addi    ra, pc, 8
        jmp     s54
        store32 s0, 16(s51)
        move_i32 ra, s55
        jret
        .size main, . - main
        .data
number: .long   0x1234567
        .bss
        .balign 64
        .globl results
results: .zero  512
";

const CALLED: &str = "
        .globl f
        .type f, @function
f:      addi    s0, pc, 0
        jret
        .size f, . - f
";

#[test]
fn each_thread_runs_in_its_own_copy() {
    // The functions are adjacent, or so far apart that a veneer connects them.
    let far = "        .text\n        .zero 0x24000\n";
    for filler in ["", far] {
        for threads in [1, 2, 8] {
            let inputs = [assembled(REPORT), assembled(filler), assembled(CALLED)];
            let layout = MemoryLayout {
                stacks: 0x0020_0000,
                ..MemoryLayout::DEFAULT
            };
            let options = LinkOptions {
                layout,
                ..options(threads)
            };
            let program = linked(&inputs, &mut [], &options).unwrap();
            let (text, size) = section(&program, ".text").unwrap();
            let bytes = size.next_multiple_of(CACHE_LINE);
            let copies = section(&program, ".text.copies");
            assert_eq!(copies, Some((text + bytes, 7 * bytes)));
            let machine = run(&program, threads);
            let found = words(&machine, &program, "results", 16 * threads);
            let (main, f) = (address(&program, "main"), address(&program, "f"));
            for (thread, words) in (0..).zip(found.chunks(16)) {
                let moved = thread * bytes;
                // `lea` is two instructions.
                let expected = [main + 28 + moved, f + moved, f, 0x0123_4567, f];
                assert_eq!(words[..5], expected, "thread {thread} of {threads}");
                if thread > 0 {
                    assert_eq!(address(&program, &format!("f.{thread}")), f + moved);
                }
            }
        }
    }
}

/// Calls of code that is not copied, such as a routine at a fixed address, reach it from each copy.
#[test]
fn distances_out_of_the_copies_are_made_anew() {
    let caller = "        .globl main\nmain:   jmpsr fixed\n        jret\n";
    let fixed = "        .globl fixed\n        .set fixed, 0x10000\n";
    let program = linked(&[assembled(caller), assembled(fixed)], &mut [], &options(4)).unwrap();
    let (text, bytes) = section(&program, ".text").unwrap();
    let bytes = bytes.next_multiple_of(CACHE_LINE);
    for thread in 0..4 {
        let place = address(&program, "main") + thread * bytes;
        let segments = program.image().segments;
        let segment = segments
            .iter()
            .find(|own| own.address == if thread == 0 { text } else { text + bytes });
        let at = (place - segment.unwrap().address) as usize;
        let word = u32::from_le_bytes(segment.unwrap().bytes[at..at + 4].try_into().unwrap());
        let inst = npu_mc::decode(word).unwrap();
        let distance = inst.operands.as_ref().last().and_then(|operand| operand.imm()).unwrap();
        assert_eq!(place.wrapping_add_signed(distance), 0x10000, "thread {thread}");
    }
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let refused = |text: &str, options: &LinkOptions| {
        let errors = linked(&[assembled(text)], &mut [], options).err().unwrap();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let plain = "        .globl main\nmain:   jret\n";
    let bare = LinkOptions {
        startup: false,
        ..options(2)
    };
    assert!(refused(plain, &bare).contains("need the start-up code"));
    let high = LinkOptions {
        layout: MemoryLayout {
            code: 0xffff_fc00,
            ..MemoryLayout::DEFAULT
        },
        ..options(8)
    };
    let text = refused(plain, &high);
    assert!(text.contains("past the end of memory"), "{text}");
}

#[test]
fn programs_that_catch_exceptions_are_refused() {
    let clif = "
function %main() -> i32 system_v {
    sig0 = (i32) system_v
    fn0 = %thrower sig0
block0:
    v0 = iconst.i32 1
    try_call fn0(v0), sig0, block1, [ default: block1 ]
block1:
    return v0
}
function %thrower(i32) system_v {
    fn0 = %npu_throw(i32, i32, i32) tail
block0(v0: i32):
    call fn0(v0, v0, v0)
    return
}
";
    let object = compiled("catch.clif", clif, &isa(&[]), false);
    assert!(linked(std::slice::from_ref(&object), &mut [], &LinkOptions::default()).is_ok());
    let errors = linked(&[object], &mut [], &options(2)).unwrap_err();
    let text = errors.iter().map(ToString::to_string).collect::<String>();
    assert!(text.contains("supports only one copy"), "{text}");
}

/// Copies do not share cache lines, whatever the start of the code.
#[test]
fn copies_begin_in_lines_of_their_own() {
    for code in [0x400, 0x404, 0x43c] {
        let options = LinkOptions {
            layout: MemoryLayout {
                code,
                ..MemoryLayout::DEFAULT
            },
            ..options(8)
        };
        let program = linked(&[assembled(REPORT), assembled(CALLED)], &mut [], &options).unwrap();
        let ((text, size), (copies, all)) = (
            section(&program, ".text").unwrap(),
            section(&program, ".text.copies").unwrap(),
        );
        assert!((text + size - 1) / CACHE_LINE < copies / CACHE_LINE, "{code:#x}");
        assert_eq!((copies - text) % CACHE_LINE, 0, "{code:#x}");
        assert_eq!(all, 7 * (copies - text), "{code:#x}");
        let machine = run(&program, 8);
        let found = words(&machine, &program, "results", 16 * 8);
        let main = address(&program, "main") + 28;
        for (thread, words) in (0..).zip(found.chunks(16)) {
            assert_eq!(words[0], main + thread * (copies - text), "{code:#x}, thread {thread}");
        }
    }
}

/// Accesses three lines of one set of the instruction cache in a loop: threads that share them
/// hang.
const ONE_SET: &str = "
        .globl main
        .balign 4096
main:   movei   s0, 40
again:  jmp     one
back:   subi    s0, s0, 1
        bnez    s0, again
        jret
        .balign 4096
one:    jmp     two
        .balign 4096
two:    jmp     back
";

#[test]
fn threads_that_share_no_line_do_not_hang() {
    let mut hung = Vec::new();
    for threads in [2, 8] {
        for text_per_thread in [false, true] {
            let options = LinkOptions {
                text_per_thread,
                ..options(threads)
            };
            let program = linked(&[assembled(ONE_SET)], &mut [], &options).unwrap();
            let mut machine = Machine::new(npu_sim::Config::default());
            let image = image(&program);
            machine.load(&image).unwrap();
            machine.enable(0, (1 << threads) - 1);
            (0..threads as usize).for_each(|number| machine.boot(number, image.entry.unwrap()));
            let mut timing = Timing::new(TimingConfig::default());
            let halt = machine.run_timed(&mut timing, 1_000_000, &mut NoSink);
            if text_per_thread {
                assert!(matches!(halt, Halt::Ended), "{threads} threads: {halt}");
            } else {
                if halt.to_string().contains("repeated_instruction_line_miss") {
                    hung.push(threads);
                }
            }
        }
    }
    // As on the hardware.
    assert_eq!(hung, [8]);
}
