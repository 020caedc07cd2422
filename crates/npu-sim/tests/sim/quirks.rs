//! The quirks of the hardware, one test each.

use super::common::{sreg, vreg};
use super::words::*;
use npu_mc::machine::{ControlRegister, TRAP_VECTOR};
use npu_mc::{Format, Opcode, Reg};
use npu_sim::{Config, HangReason, Hazard, Lanes, Machine, Status, Stop, TrapReason};

const BASE: u32 = 0x1000;
const DATA: u32 = 0x10_0000;
const IO: u32 = 0xff00_0000;
const NOP: u32 = 0xffff_ffff;

fn at(config: Config, words: &[u32]) -> Machine {
    let mut machine = Machine::new(config);
    for (word, address) in words.iter().zip((BASE..).step_by(4)) {
        machine.memory_mut().write_u32(address, *word).unwrap();
    }
    let thread = machine.thread_mut(0);
    thread.set_pc(BASE);
    thread.set_mask(0xffff);
    thread.set_scalar(sreg(40), DATA);
    machine
}

/// Creates a machine with `words` at [`BASE`], all lanes on, and [`DATA`] in s40.
fn program(words: &[u32]) -> Machine {
    at(Config::default(), words)
}

/// Runs all of `words` once.
fn done(words: &[u32], setup: impl FnOnce(&mut Machine)) -> Machine {
    let mut machine = program(words);
    setup(&mut machine);
    assert_eq!(machine.run(0, words.len() as u64), Stop::StepLimit);
    machine
}

fn counting() -> Lanes {
    Lanes(std::array::from_fn(|k| k as u32))
}

fn hazards(machine: &Machine) -> Vec<Hazard> {
    machine.findings().iter().map(|f| f.hazard).collect()
}

#[test]
fn the_m_bit_means_nothing_and_v_bits_mask() {
    for m in [0, 1] {
        let machine = done(&[rr(4, 1, 2, 2, VVV) | m], |machine| {
            machine.thread_mut(0).set_mask(0x000f);
            machine.thread_mut(0).set_vector(vreg(1), Lanes::splat(9));
            machine.thread_mut(0).set_vector(vreg(2), Lanes::splat(3));
        });
        let lanes = machine.thread(0).vector(vreg(1)).0;
        assert_eq!((lanes[3], lanes[4]), (6, 9));
    }
    // Without a V bit the lane mask has no effect.
    let machine = done(&[rr(4, 1, 2, 2, SSS)], |machine| {
        machine.thread_mut(0).set_mask(0);
        machine.thread_mut(0).set_scalar(sreg(2), 4);
    });
    assert_eq!(machine.thread(0).scalar(sreg(1)), 8);
}

#[test]
fn a_scalar_destination_takes_lane_0_whatever_the_mask() {
    let machine = done(&[rr(4, 1, 2, 3, SVS)], |machine| {
        machine.thread_mut(0).set_mask(0xfffe);
        machine.thread_mut(0).set_vector(vreg(2), counting());
        machine.thread_mut(0).set_scalar(sreg(3), 100);
    });
    assert_eq!(machine.thread(0).scalar(sreg(1)), 100);
}

#[test]
fn destination_63_is_a_jump_in_the_r_format_only() {
    for v in [SSS, VSS] {
        for op in [0, 1, 3, 4] {
            let machine = done(&[rr(op, 63, 2, 3, v)], |machine| {
                machine.thread_mut(0).set_scalar(sreg(2), 0x2000);
            });
            assert_eq!(machine.thread(0).pc(), 0x2000, "op {op}");
            assert_eq!(hazards(&machine), [Hazard::Destination63]);
        }
        // 5 and 6 are beqz and bnez with distance src1.
        let machine = done(&[rr(5, 63, 2, 3, v)], |machine| {
            machine.thread_mut(0).set_scalar(sreg(3), 0x40);
        });
        assert_eq!(machine.thread(0).pc(), BASE + 0x40);
        let machine = done(&[rr(32, 63, 2, 3, v)], |_| {});
        assert_eq!(machine.thread(0).pc(), BASE + 4);
    }
    let machine = done(&[ri(4, 63, 2, 8), mvi(2, 63, 8, 0), mvi(2, 63, 8, 1)], |_| {});
    assert_eq!(machine.thread(0).pc(), BASE + 12);
    assert_eq!(machine.thread(0).vector(vreg(63)), &Lanes::splat(8));
}

#[test]
fn reading_register_63_gives_the_address_of_the_instruction() {
    let words = [
        rr(32, 1, 63, 0, SSS),
        ri(4, 2, 63, 8),
        mem(2, 3, 63, -8),
        mem(34, 63, 40, 0),
        rr(32, 4, 63, 0, VSS),
    ];
    let machine = done(&words, |_| {});
    let thread = machine.thread(0);
    assert_eq!(thread.scalar(sreg(1)), BASE);
    assert_eq!(thread.scalar(sreg(2)), BASE + 12);
    assert_eq!(thread.scalar(sreg(3)), words[0]);
    assert_eq!(machine.memory().read_u32(DATA), BASE + 12);
    assert_eq!(thread.vector(vreg(4)), &Lanes::splat(BASE + 16));
}

#[test]
fn half_word_moves_and_the_mask() {
    let machine = done(
        &[mvi(1, 1, 0x1234, 0), mvi(0, 2, 0xffff, 0), mvi(2, 3, 0xffff, 0)],
        |m| {
            for register in 1..4 {
                m.thread_mut(0).set_scalar(sreg(register), 0xaaaa_bbbb);
            }
        },
    );
    let thread = machine.thread(0);
    assert_eq!(thread.scalar(sreg(1)), 0x1234_bbbb);
    assert_eq!(thread.scalar(sreg(2)), 0xaaaa_ffff);
    assert_eq!(thread.scalar(sreg(3)), 0x0000_ffff);

    // moveih rm: the register keeps its low half, the lane mask becomes 0.
    let mut machine = done(&[mvi(1, 59, 0x1234, 0)], |m| {
        m.thread_mut(0).set_scalar(sreg(59), 0x00ff);
    });
    assert_eq!(machine.thread(0).scalar(sreg(59)), 0x1234_00ff);
    assert_eq!(machine.thread(0).mask(), 0);
    // Opcodes 3 to 7 write nothing.
    machine = done(&[mvi(3, 1, 7, 0), mvi(7, 59, 7, 0)], |_| {});
    assert_eq!(machine.thread(0).scalar(sreg(1)), 0);
    assert_eq!(machine.thread(0).mask(), 0xffff);
}

#[test]
fn a_write_to_v59_replaces_the_mask() {
    let machine = done(&[mvi(2, 59, 0x00c3, 1), mvi(2, 1, 5, 1)], |_| {});
    assert_eq!(machine.thread(0).mask(), 0x00c3);
    assert_eq!(machine.thread(0).vector(vreg(1)).0[..4], [5, 5, 0, 0]);
    assert_eq!(hazards(&machine), [Hazard::MaskByV59]);
}

#[test]
fn undefined_operations() {
    let without_instruction = |range: std::ops::Range<u32>| -> Vec<u32> {
        let number = |op: &Opcode| op.desc().base >> 24 & 63;
        let register_forms = || Opcode::ALL.iter().filter(|op| op.desc().format == Format::Rr);
        range
            .filter(|free| !register_forms().any(|op| number(op) == *free))
            .collect()
    };
    // 26 to 31 return 0.
    let zeros = without_instruction(26..32);
    let (first, last) = (zeros[0], zeros[zeros.len() - 1]);
    let machine = done(&[rr(first, 1, 2, 3, SSS), ri(last, 2, 2, 3)], |m| {
        m.thread_mut(0).set_scalar(sreg(1), 5);
        m.thread_mut(0).set_scalar(sreg(2), 5);
    });
    assert_eq!(
        (machine.thread(0).scalar(sreg(1)), machine.thread(0).scalar(sreg(2))),
        (0, 0)
    );
    assert_eq!(hazards(&machine), [Hazard::UndefinedOperation; 2]);
    // Operations of missing float units hang at issue.
    let hanging = without_instruction(46..63);
    assert!(hanging.len() >= 13, "{hanging:?}");
    for op in hanging {
        let mut machine = program(&[NOP, rr(op, 1, 2, 3, SSS)]);
        let reason = HangReason::MissingUnit { op: op as u8 };
        let pc = BASE + 4;
        assert_eq!(machine.run(0, 10), Stop::Hang { pc, reason });
    }
    // The cross product hangs the next instruction that reads or writes its destination.
    for next in [rr(4, 5, 1, 2, VVV), mvi(2, 1, 0, 1)] {
        let mut machine = program(&[rr(63, 1, 2, 3, VVV), rr(4, 5, 6, 7, VVV), next]);
        let stop = machine.run(0, 10);
        let register = Reg::V(vreg(1));
        let reason = HangReason::BusyRegister { register };
        assert_eq!(stop, Stop::Hang { pc: BASE + 8, reason });
    }
    // 64-bit float forms return 0; integer operations ignore the bit.
    let machine = done(&[rr(33, 1, 2, 2, SSS) | 16, rr(4, 3, 2, 2, SSS) | 16], |m| {
        m.thread_mut(0).set_scalar(sreg(2), 0x3f80_0000);
    });
    assert_eq!(machine.thread(0).scalar(sreg(1)), 0);
    assert_eq!(machine.thread(0).scalar(sreg(3)), 0x7f00_0000);
    // Words above 0xc0 are dropped.
    let machine = done(&[0xc000_0000, 0xdead_beef, NOP], |_| {});
    assert_eq!(machine.thread(0).pc(), BASE + 12);
}

#[test]
fn packed_loads_take_one_element_a_word() {
    let machine = done(
        &[
            mem(7, 1, 40, 16),
            mem(11, 2, 40, 0),
            mem(8, 3, 40, 32),
            mem(12, 4, 40, 0),
        ],
        |m| {
            for k in 0..64u32 {
                m.memory_mut().write_u8(DATA + k, 0x80 + k as u8).unwrap();
            }
        },
    );
    let lane = |register: u8, k: usize| machine.thread(0).vector(vreg(register)).0[k];
    assert_eq!((lane(1, 0), lane(1, 1)), (0xffff_ff80, 0xffff_ff84));
    assert_eq!((lane(2, 0), lane(2, 15)), (0x80, 0x80 + 60));
    assert_eq!((lane(3, 0), lane(3, 1)), (0xffff_8180, 0xffff_8584));
    assert_eq!((lane(4, 0), lane(4, 1)), (0x8180, 0x8584));
    assert_eq!(machine.thread(0).trap_reason(), TrapReason::None);
}

#[test]
fn main_memory_vector_stores_ignore_the_mask_and_pack() {
    let machine = done(&[mem(38, 1, 40, 0), mem(36, 1, 40, 64), mem(37, 1, 40, 96)], |m| {
        m.thread_mut(0).set_mask(0);
        m.thread_mut(0).set_vector(vreg(1), counting());
    });
    let memory = machine.memory();
    assert_eq!(memory.read_u32(DATA + 60), 15);
    assert_eq!(memory.read_u32(DATA + 64), 0x0302_0100);
    assert_eq!(memory.read_u32(DATA + 96), 0x0001_0000);
}

#[test]
fn scratchpad_vector_accesses_obey_the_mask() {
    let machine = done(&[spm(38, 1, 2, 4), spm(7, 3, 2, 4), spm(36, 1, 2, 128)], |m| {
        m.thread_mut(0).set_mask(0x8001);
        m.thread_mut(0).set_vector(vreg(1), Lanes::splat(0x1ff));
        m.thread_mut(0).set_vector(vreg(3), Lanes::splat(7));
    });
    let byte = |at: usize| machine.scratchpad()[at];
    assert_eq!((byte(4), byte(5), byte(8), byte(64)), (0xff, 1, 0, 0xff));
    assert_eq!((byte(128), byte(129), byte(188)), (0xff, 0, 0xff));
    let lanes = machine.thread(0).vector(vreg(3)).0;
    assert_eq!((lanes[0], lanes[1], lanes[15]), (u32::MAX, 7, u32::MAX));
}

#[test]
fn scratchpad_vector_accesses_with_an_empty_mask_never_complete() {
    let mut machine = program(&[spm(9, 1, 2, 0), NOP, rr(32, 3, 1, 0, SVV)]);
    machine.thread_mut(0).set_mask(0);
    let register = Reg::V(vreg(1));
    let reason = HangReason::BusyRegister { register };
    assert_eq!(machine.run(0, 10), Stop::Hang { pc: BASE + 8, reason });
    assert_eq!(hazards(&machine), [Hazard::EmptyMask]);
    // A barrier waits for the store, too.
    let mut machine = program(&[spm(38, 1, 2, 0), ctl(0, 3, 3)]);
    machine.thread_mut(0).set_mask(0);
    let reason = HangReason::PendingAtBarrier;
    assert_eq!(machine.run(0, 10), Stop::Hang { pc: BASE + 4, reason });
}

#[test]
fn gather_and_scatter_are_not_what_they_say() {
    let words = [mem(16, 1, 40, 0), mem(42, 2, 40, 0), spm(40, 2, 3, 1)];
    let machine = done(&words, |m| {
        m.thread_mut(0).set_scalar(sreg(1), 5);
        m.thread_mut(0).set_scalar(sreg(2), 0x1234_5678);
        m.thread_mut(0).set_mask(0);
    });
    assert_eq!(machine.thread(0).scalar(sreg(1)), 0);
    assert_eq!(machine.memory().read_u32(DATA), 0x1234_5678);
    assert_eq!(machine.memory().read_u32(DATA + 4), 0);
    assert_eq!(machine.scratchpad()[61], 0x78);
    assert_eq!(machine.scratchpad()[60], 0);
}

#[test]
fn misaligned_accesses_are_performed_and_trap() {
    let run = |word: u32| {
        let mut machine = program(&[word]);
        for k in 0..64u32 {
            machine.memory_mut().write_u8(DATA + k, k as u8).unwrap();
        }
        machine.thread_mut(0).set_scalar(sreg(1), 0x4433_2211);
        machine.thread_mut(0).set_scalar(sreg(2), DATA + 2);
        machine.thread_mut(0).set_scalar(sreg(3), DATA + 1);
        assert_eq!(machine.run(0, 1), Stop::StepLimit);
        machine
    };
    let trapped = |machine: &Machine| {
        assert_eq!(machine.thread(0).pc(), TRAP_VECTOR);
        assert_eq!(machine.thread(0).trap_reason(), TrapReason::MemoryMisaligned);
        // Hardware does not write the trap register; it belongs to software.
        assert_eq!(machine.thread(0).scalar(sreg(58)), 0);
    };
    // Low address bits are ignored.
    let machine = run(mem(2, 5, 40, 6));
    trapped(&machine);
    assert_eq!(machine.thread(0).scalar(sreg(5)), 0x0706_0504);
    // The byte at address p is byte p mod 4 of the register.
    let machine = run(mem(34, 1, 40, 5));
    trapped(&machine);
    let bytes: Vec<u8> = (4..10).map(|k| machine.memory().read_u8(DATA + k)).collect();
    assert_eq!(bytes, [4, 0x22, 0x33, 0x44, 0x11, 9]);
    let machine = run(mem(9, 5, 40, 4));
    trapped(&machine);
    assert_eq!(machine.thread(0).vector(vreg(5)).0[0], 0x0302_0100);
    // `flush` requires alignment 4, `dcache_inv` requires 2.
    trapped(&run(ctl(2, 2, 0)));
    trapped(&run(ctl(5, 3, 0)));
    assert_eq!(run(ctl(5, 2, 0)).thread(0).pc(), BASE + 4);
    assert_eq!(run(ctl(2, 40, 0)).thread(0).pc(), BASE + 4);
    for (code, alignment) in [(2, 4), (5, 2)] {
        for address in DATA..DATA + 16 {
            let mut machine = program(&[ctl(code, 41, 0)]);
            machine.thread_mut(0).set_scalar(sreg(41), address);
            machine.run(0, 1);
            let traps = machine.thread(0).pc() != BASE + 4;
            assert_eq!(traps, !address.is_multiple_of(alignment), "{code} at {address:#x}");
        }
    }
    // 64-bit opcodes check no alignment.
    assert_eq!(run(mem(3, 5, 40, 3)).thread(0).pc(), BASE + 4);
    // Scratchpad: the access moves the whole word.
    let machine = run(spm(34, 1, 0, 5));
    assert_eq!(machine.thread(0).trap_reason(), TrapReason::ScratchpadMisaligned);
    assert_eq!(machine.scratchpad()[3..9], [0, 0x11, 0x22, 0x33, 0x44, 0]);
}

#[test]
fn a_store_to_any_protected_byte_is_refused() {
    for (code, bytes) in [(32, 1), (33, 2), (34, 4), (36, 16), (37, 32), (38, 64)] {
        for at in 0..64 {
            for protected in 0..64 {
                let inside = (at..at + bytes).contains(&protected);
                let last = DATA + 64 - bytes;
                if !(at % bytes == 0 && DATA + at <= last) {
                    continue;
                }
                let mut machine = program(&[mem(code, 1, 40, at.cast_signed()), NOP]);
                machine.protect(DATA + protected, 1).unwrap();
                let refused = Stop::ReadOnly {
                    pc: BASE,
                    address: DATA + protected,
                };
                let stop = if inside { refused } else { Stop::StepLimit };
                assert_eq!(machine.run(0, 1), stop, "{code} at {at}, {protected} is protected");
            }
        }
    }
}

#[test]
fn the_instruction_behind_a_trap_is_a_finding_unless_it_cannot_slip_through() {
    for (next, slips) in [(ri(4, 1, 1, 1), true), (NOP, false), (mem(2, 1, 40, 0), false)] {
        let mut machine = program(&[mem(2, 5, 40, 6), next]);
        machine.run(0, 1);
        assert_eq!(hazards(&machine) == [Hazard::ImpreciseTrap], slips);
    }
}

#[test]
fn shifts_take_the_whole_amount() {
    let shift = |op, value: u32, amount: u32| {
        let machine = done(&[rr(op, 1, 2, 3, SSS)], |m| {
            m.thread_mut(0).set_scalar(sreg(2), value);
            m.thread_mut(0).set_scalar(sreg(3), amount);
        });
        machine.thread(0).scalar(sreg(1))
    };
    assert_eq!(shift(11, 1, 31), 1 << 31);
    assert_eq!(shift(11, 1, 32), 0);
    assert_eq!(shift(10, 1 << 31, 32), 0);
    assert_eq!(shift(9, 1 << 31, 31), u32::MAX);
    assert_eq!(shift(9, 1 << 31, 32), u32::MAX);
    assert_eq!(shift(9, 1 << 31, 40), 0x00ff_ffff);
    assert_eq!(shift(9, 1 << 31, 64), 0);
    assert_eq!(shift(9, 1 << 31, u32::MAX), 0);
}

#[test]
fn branches_and_links() {
    let after = |word: u32| {
        let machine = done(&[word], |m| {
            m.thread_mut(0).set_scalar(sreg(1), 0x2000);
            m.thread_mut(0).set_scalar(sreg(62), 0x3000);
        });
        (machine.thread(0).pc(), machine.thread(0).scalar(sreg(62)))
    };
    assert_eq!(after(jba(0, 1, 100)), (0x2000, 0x3000));
    // A call through a register sets the wrong link.
    assert_eq!(after(jba(1, 1, 0)), (0x2000, 0x2004));
    assert_eq!(after(jba(3, 1, 0)), (0x3000, 0x3000));
    assert_eq!(after(jba(4, 1, 0)), (0x2000, 0x3000));
    assert_eq!(after(jba(2, 1, 8)), (BASE + 4, 0x3000));
    assert_eq!(after(jba(5, 1, 8)), (BASE + 4, 0x3000));
    assert_eq!(after(jba(6, 1, -16)), (BASE - 16, 0x3000));
    assert_eq!(after(jra(1, 0x100)), (BASE + 0x100, BASE + 4));
    assert_eq!(after(jra(3, 0x100)), (BASE + 0x100, 0x3000));
    assert_eq!(after(jra(4, -0x100)), (BASE - 0x100, 0x3000));
    // Only 18 of the 24 bits are significant.
    assert_eq!(after(jra(0, 8) | 0xfc_0000), (BASE + 8, 0x3000));
    assert_eq!(after(jra(2, 8)), (BASE + 4, 0x3000));
}

#[test]
fn compares() {
    let words = [
        rr(16, 1, 2, 3, SSS),
        rr(39, 4, 2, 3, SSS),
        rr(16, 5, 2, 3, SVV),
        rr(39, 6, 2, 3, SVV),
        rr(39, 7, 2, 3, SSV),
        rr(37, 8, 9, 2, SSV),
    ];
    let machine = done(&words, |m| {
        let thread = m.thread_mut(0);
        thread.set_mask(1);
        thread.set_scalar(sreg(2), 2);
        thread.set_scalar(sreg(3), 1);
        thread.set_vector(vreg(2), counting());
        thread.set_vector(vreg(3), Lanes::splat(7));
    });
    let s = |register| machine.thread(0).scalar(sreg(register));
    assert_eq!(s(1), 1);
    assert_eq!(s(4), 0xffff);
    // All lanes are compared, regardless of the lane mask.
    assert_eq!(s(5), 0xff00);
    assert_eq!(s(6), 0xff00);
    // A scalar first operand compares lane 0 only.
    assert_eq!(s(7), 0);
    assert_eq!(s(8), 0xffff);
}

#[test]
fn the_io_space() {
    // Byte stores read, and consume input.
    let words = [
        mem(32, 1, 41, 0),
        mem(2, 2, 41, 4),
        mem(2, 3, 41, 0),
        mem(2, 4, 41, 4),
        mem(34, 1, 41, 0),
        mem(2, 5, 41, 16),
    ];
    let machine = done(&words, |m| {
        m.push_console_input(b"ab");
        m.thread_mut(0).set_scalar(sreg(1), 0x41);
        m.thread_mut(0).set_scalar(sreg(41), IO);
    });
    let s = |register| machine.thread(0).scalar(sreg(register));
    assert_eq!((s(2), s(3), s(4), s(5)), (1, b'b'.into(), 0, 0));
    assert_eq!(machine.console_output(), b"A");
    // A write without a device blocks all later I/O.
    let mut machine = program(&[mem(34, 1, 41, 8), ri(4, 2, 2, 1), mem(2, 3, 41, 4)]);
    machine.thread_mut(0).set_scalar(sreg(41), IO);
    let reason = HangReason::BlockedIo;
    assert_eq!(machine.run(0, 10), Stop::Hang { pc: BASE + 8, reason });
    // The topmost line is memory.
    let machine = done(&[mem(34, 1, 41, 0)], |m| {
        m.thread_mut(0).set_scalar(sreg(1), 77);
        m.thread_mut(0).set_scalar(sreg(41), 0xffff_ffc0);
    });
    assert_eq!(machine.memory().read_u32(0xffff_ffc0), 77);
}

#[test]
fn barriers_of_one_thread() {
    let machine = done(&[ctl(0, 1, 2), ctl(1, 1, 2), ctl(7, 1, 2)], |_| {});
    assert_eq!(machine.thread(0).pc(), BASE + 12);
    let mut machine = program(&[ctl(0, 1, 2)]);
    machine.thread_mut(0).set_scalar(sreg(1), 42);
    machine.thread_mut(0).set_scalar(sreg(2), 1);
    let reason = HangReason::Barrier { id: 42, missing: 1 };
    assert_eq!(machine.run(0, 10), Stop::Hang { pc: BASE, reason });
}

#[test]
fn control_registers() {
    // Writes 0xfd to the status and reads it; reads register 40; reads the thread count.
    let words = [ctl(4, 1, 2), ctl(3, 3, 2), ctl(3, 4, 5), ctl(3, 6, 7)];
    let machine = done(&words, |m| {
        let thread = m.thread_mut(0);
        thread.set_scalar(sreg(1), 0xfd);
        thread.set_scalar(sreg(2), u32::from(ControlRegister::ThreadStatus.number()) | 0x40);
        thread.set_scalar(sreg(5), 40);
        thread.set_scalar(sreg(7), u32::from(ControlRegister::Threads.number()));
    });
    assert_eq!(machine.thread(0).scalar(sreg(3)), 5);
    assert_eq!(machine.thread(0).scalar(sreg(4)), 0);
    assert_eq!(machine.thread(0).scalar(sreg(6)), 8);
    assert_eq!(hazards(&machine), [Hazard::ControlRegister]);
    // Every write of the host goes to CPU control as well.
    let mut machine = program(&[]);
    machine.set_control_register(ControlRegister::Argc, 0x8000_0001);
    assert_eq!(machine.control_register(0, ControlRegister::Argc), 0x8000_0001);
    assert_eq!(machine.control_register(0, ControlRegister::CpuControl), 0x8000_0001);
    assert_eq!(machine.control_register(5, ControlRegister::GlobalId), 5);
}

#[test]
fn shuffles_and_lanes() {
    let words = [rr(24, 1, 2, 3, VVV), rr(25, 4, 2, 5, SVS), rr(50, 6, 2, 0, SVS)];
    let machine = done(&words, |m| {
        let thread = m.thread_mut(0);
        thread.set_vector(vreg(2), counting());
        thread.set_vector(vreg(3), Lanes(std::array::from_fn(|k| 15 - k as u32)));
        thread.set_scalar(sreg(5), 3);
    });
    assert_eq!(machine.thread(0).vector(vreg(1)).0[2], 13);
    assert_eq!(machine.thread(0).scalar(sreg(4)), 3);
    assert_eq!(machine.thread(0).scalar(sreg(6)), 0xaaaa);
    assert!(machine.findings().is_empty());
    for index in [15, 16, 19] {
        let expected = if index > 15 {
            vec![Hazard::LaneIndex]
        } else {
            Vec::new()
        };
        let machine = done(&[rr(25, 4, 2, 5, SVS)], |m| {
            m.thread_mut(0).set_vector(vreg(2), counting());
            m.thread_mut(0).set_scalar(sreg(5), index);
        });
        assert_eq!(machine.thread(0).scalar(sreg(4)), index % 16);
        assert_eq!(hazards(&machine), expected, "getlane {index}");
        let machine = done(&[rr(24, 1, 2, 3, VVV)], |m| {
            m.thread_mut(0).set_vector(vreg(2), counting());
            m.thread_mut(0)
                .set_vector(vreg(3), Lanes(std::array::from_fn(|k| if k == 4 { index } else { 1 })));
        });
        assert_eq!(machine.thread(0).vector(vreg(1)).0[4], index % 16);
        assert_eq!(hazards(&machine), expected, "shuffle {index}");
    }
}

#[test]
fn a_scalar_float_result_with_lane_0_off_is_stale() {
    let machine = done(&[rr(33, 1, 2, 3, SVS)], |m| m.thread_mut(0).set_mask(2));
    assert_eq!(hazards(&machine), [Hazard::StaleFloat]);
    let machine = done(&[rr(33, 1, 2, 3, SVS), rr(33, 1, 2, 3, VVS)], |_| {});
    assert!(machine.findings().is_empty());
}

#[test]
fn only_one_float_operation_has_a_form_of_64_bits() {
    for code in (33..=42).chain([48, 49]) {
        let [short, long] = [0, 1].map(|bit| done(&[rr(code, 1, 2, 3, SSS) | bit << 4], |_| {}));
        let [found, other] = [&short, &long].map(|machine| (hazards(machine), machine.thread(0).scalar(sreg(1))));
        if code == 49 {
            assert_eq!(found, other);
        } else {
            assert_eq!(other, (vec![Hazard::UndefinedOperation], 0), "operation {code}");
        }
        assert_eq!(found.0, []);
    }
}

/// Branches at both ends of a page of code, to every word around the end of the other page.
#[test]
fn branches_from_one_page_to_another() {
    let page = 4096 / 4;
    for from in [page - 3, page - 2, page, page + 1] {
        for to in page - 4..page + 4 {
            if to == from {
                continue;
            }
            let mut words = vec![NOP; 2 * page as usize];
            words[from as usize] = jra(0, 4 * (to - from));
            let run = |traced: bool| {
                let mut machine = program(&words);
                machine.thread_mut(0).set_pc(BASE + 4 * from as u32);
                match traced {
                    true => machine.run_traced(0, 1, &mut |_| {}),
                    false => machine.run(0, 1),
                };
                machine.thread(0).pc()
            };
            assert_eq!(
                [run(false), run(true)],
                [BASE + 4 * to as u32; 2],
                "from {from} to {to}"
            );
        }
    }
}

#[test]
fn a_slow_result_before_a_taken_branch_can_be_lost() {
    let fadd = rr(33, 1, 2, 3, SSS);
    let load = mem(2, 1, 40, 0);
    let vload = mem(9, 1, 40, 0);
    let use_scalar = rr(4, 5, 1, 1, SSS);
    let other = ri(4, 6, 6, 1);
    let jump = jra(0, 8);
    let lost = |words: &[u32]| {
        let mut machine = program(words);
        machine.run(0, 24);
        let found = hazards(&machine);
        let mut traced = program(words);
        traced.run_traced(0, 24, &mut |_| {});
        assert_eq!(found, hazards(&traced));
        let mut strict = at(
            Config {
                strict: true,
                ..Config::default()
            },
            words,
        );
        let stop = strict.run(0, 24);
        assert_eq!(matches!(stop, Stop::Erratum(_)), !found.is_empty(), "{stop}");
        found == [Hazard::LostResult]
    };
    // The word between the jump and its target is skipped.
    assert!(lost(&[fadd, jump, NOP, use_scalar]));
    assert!(lost(&[load, jump, NOP, use_scalar]));
    assert!(lost(&[vload, jump, NOP, rr(32, 5, 1, 0, SVS)]));
    assert!(lost(&[load, jba(5, 9, 8), NOP, use_scalar]));
    assert!(lost(&[load, jump, NOP, other, other, use_scalar]));
    // Undecoded words do not separate the load from the jump.
    assert!(lost(&[load, NOP, NOP, jump, NOP, use_scalar]));
    // Another instruction separates them, and a branch that is not taken loses nothing.
    assert!(!lost(&[load, other, jump, NOP, use_scalar]));
    assert!(!lost(&[load, jba(6, 9, 8), use_scalar, use_scalar]));
    // A branch that reads the result has waited for it.
    assert!(!lost(&[load, jba(5, 1, 8), NOP, use_scalar]));
    // A latency of 11 is short enough for a reader, but not for a writer.
    let fmul = rr(35, 1, 2, 3, SSS);
    let write = mvi(2, 1, 0, 0);
    assert!(!lost(&[fmul, jump, NOP, use_scalar]));
    assert!(!lost(&[spm(2, 1, 2, 0), jump, NOP, use_scalar]));
    for producer in [fadd, fmul, rr(49, 1, 2, 3, SSS), spm(2, 1, 2, 0)] {
        assert!(lost(&[producer, jump, NOP, write, use_scalar]));
    }
    // An integer sum is late after five float results, but not after four.
    let sum = rr(4, 1, 6, 6, SSS);
    let burst = |count| {
        (0..count)
            .map(|n| rr(33, 20 + n, 2, 3, SSS))
            .chain([sum, jump, NOP, use_scalar])
    };
    assert!(!lost(&burst(4).collect::<Vec<_>>()));
    assert!(lost(&burst(5).collect::<Vec<_>>()));
    // Two lost results at once.
    assert!(lost(&[load, jump, NOP, mem(2, 8, 40, 4), jump, NOP, use_scalar]));
    // A load can arrive after a later write.
    assert!(lost(&[load, jump, NOP, mvi(2, 1, 0, 0)]));
    // A jump to the branch, instead of falling through to it, is safe.
    let words = [jra(0, 12), load, NOP, jra(0, 8), NOP, use_scalar];
    assert!(!lost(&words));
    // A write conflicts with the result of each unit up to a certain number of instructions after
    // the target.
    let reach = |producer: u32| {
        (0..npu_sim::LOST_WINDOW as usize)
            .take_while(|&between| {
                let mut words = vec![producer, jump, NOP];
                words.extend(vec![other; between]);
                words.push(write);
                lost(&words)
            })
            .count()
    };
    let reaches = [fadd, fmul, rr(36, 1, 2, 3, SSS), rr(49, 1, 2, 3, SSS), spm(2, 1, 2, 0)].map(reach);
    assert_eq!(reaches, [3, 2, 15, 2, 2]);
    // The simulator writes the mask immediately, and still reports early readers.
    let reads = |between: usize| {
        let mut words = vec![rr(33, 59, 2, 3, SSS), jump, NOP];
        words.extend(vec![other; between]);
        words.push(rr(32, 5, 59, 0, SSS));
        lost(&words)
    };
    assert_eq!([0, 2, 3].map(reads), [true, true, false]);
    // The register is no longer watched after a while.
    let mut words = vec![load, jump, NOP];
    words.extend([other; npu_sim::LOST_WINDOW as usize]);
    words.push(use_scalar);
    let mut machine = program(&words);
    machine.run(0, words.len() as u64 - 1);
    assert!(machine.findings().is_empty());
}

#[test]
fn undriven_bits_of_a_vector_compare() {
    let compare = rr(14, 1, 2, 3, SVV);
    let found = |words: &[u32]| {
        let mut all = vec![compare];
        all.extend(words);
        let machine = done(&all, |m| m.thread_mut(0).set_scalar(sreg(9), 0xffff));
        let mut traced = program(&all);
        traced.thread_mut(0).set_scalar(sreg(9), 0xffff);
        traced.run_traced(0, all.len() as u64, &mut |_| {});
        assert_eq!(hazards(&machine), hazards(&traced));
        hazards(&machine) == [Hazard::UndrivenBits]
    };
    let and = |dst, src| rr(2, dst, src, 9, SSS);
    // Copied to the lane mask, masked, shifted out, stored narrow: no use.
    assert!(!found(&[rr(32, 59, 1, 0, SSS), rr(4, 4, 4, 4, VVV)]));
    assert!(!found(&[and(1, 1), jba(6, 1, 4)]));
    assert!(!found(&[and(4, 1), rr(16, 5, 4, 9, SSS)]));
    assert!(!found(&[ri(11, 1, 1, 16), jba(6, 1, 4)]));
    assert!(!found(&[ri(2, 4, 1, 1), jba(6, 4, 4)]));
    assert!(!found(&[mem(33, 1, 40, 0), mem(2, 4, 40, 0), jba(6, 4, 4)]));
    assert!(!found(&[rr(44, 4, 1, 0, SSS), jba(6, 4, 4)]));
    // Spilled, reloaded and masked: no use; not masked: a use.
    assert!(!found(&[mem(34, 1, 40, 0), mem(2, 4, 40, 0), and(4, 4), jba(6, 4, 4)]));
    assert!(found(&[mem(34, 1, 40, 0), mem(2, 4, 40, 0), rr(16, 5, 4, 9, SSS)]));
    // A vector store over the spilled word drives it again; a store next to it does not.
    let spill = mem(34, 1, 40, 4);
    let reload = [mem(2, 4, 40, 4), rr(16, 5, 4, 9, SSS)];
    assert!(!found(&[spill, mem(38, 7, 40, 0), reload[0], reload[1]]));
    assert!(found(&[
        spill,
        mem(38, 7, 40, 64),
        mem(34, 9, 40, 8),
        reload[0],
        reload[1]
    ]));
    assert!(found(&[rr(16, 5, 1, 9, SSS)]));
    assert!(found(&[rr(3, 4, 1, 9, SSS), rr(4, 4, 4, 4, SSS), rr(12, 5, 4, 0, SSS)]));
    assert!(found(&[rr(32, 4, 1, 0, VSS)]));
    assert!(found(&[mem(4, 4, 1, 0)]));
    assert!(found(&[ri(10, 4, 1, 1), and(4, 4), jba(0, 4, 0)]));
    // A driven 1 determines a branch, and a count from below.
    let mut machine = program(&[rr(15, 1, 2, 3, SVV), jba(6, 1, 8), NOP, rr(13, 4, 1, 0, SSS)]);
    machine.thread_mut(0).set_vector(vreg(2), counting());
    machine.run(0, 3);
    assert!(machine.findings().is_empty(), "{:?}", machine.findings());
}

#[test]
fn a_jump_to_itself_ends_a_run() {
    let write_status = |value| [mvi(2, 50, value, 0), mvi(2, 51, 11, 0), ctl(4, 50, 51), jra(0, 0)];
    for (value, status) in [(2, Status::ENDED), (3, Status::TRAPPED)] {
        let mut machine = program(&write_status(value));
        assert_eq!(machine.run(0, 100), Stop::Ended { status });
        assert_eq!(machine.thread(0).pc(), BASE + 12);
        assert_eq!(machine.run(0, 100), Stop::Ended { status });
    }
    let mut machine = program(&write_status(1));
    let reason = HangReason::SelfJump;
    assert_eq!(machine.run(0, 100), Stop::Hang { pc: BASE + 12, reason });
    let mut machine = program(&[jba(0, 1, 0)]);
    machine.thread_mut(0).set_scalar(sreg(1), BASE);
    let reason = HangReason::SelfJump;
    assert_eq!(machine.run(0, 100), Stop::Hang { pc: BASE, reason });
}

#[test]
fn stop_addresses() {
    let mut machine = program(&[NOP, ri(4, 1, 1, 1), ri(4, 1, 1, 1), jra(0, -12)]);
    assert!(!machine.add_breakpoint(BASE + 8));
    let pc = BASE + 8;
    for turn in 1..4 {
        assert_eq!(machine.run(0, 100), Stop::Breakpoint { pc });
        assert_eq!(machine.thread(0).scalar(sreg(1)), 2 * turn - 1);
    }
    // A traced run stops and steps over in the same way.
    assert_eq!(machine.run_traced(0, 100, &mut |_| {}), Stop::Breakpoint { pc });
    assert_eq!(machine.thread(0).scalar(sreg(1)), 7);
    assert!(machine.remove_breakpoint(pc));
    assert_eq!(machine.run(0, 100), Stop::StepLimit);
    // In unwritten memory, and at the start of a run.
    machine.add_breakpoint(0x5000);
    machine.thread_mut(0).set_pc(0x4ff8);
    assert_eq!(machine.run(0, 100), Stop::Breakpoint { pc: 0x5000 });
    let mut machine = program(&[NOP]);
    machine.add_breakpoint(BASE);
    assert_eq!(machine.run(0, 100), Stop::Breakpoint { pc: BASE });
    assert_eq!(machine.thread(0).instructions(), 0);
}

#[test]
fn stores_to_code_take_effect() {
    // The store replaces the next instruction, in two iterations of the loop.
    let words = [mem(34, 1, 2, 0), ri(4, 3, 3, 1), ri(5, 5, 5, 1), jba(6, 5, -12)];
    let machine = {
        let mut machine = program(&words);
        let thread = machine.thread_mut(0);
        thread.set_scalar(sreg(1), ri(4, 3, 3, 100));
        thread.set_scalar(sreg(2), BASE + 4);
        thread.set_scalar(sreg(5), 3);
        assert_eq!(machine.run(0, 12), Stop::StepLimit);
        machine
    };
    assert_eq!(machine.thread(0).scalar(sreg(3)), 300);
    // Changes by the host between runs, including replacement by another memory.
    let mut machine = program(&[ri(4, 3, 3, 1)]);
    machine.run(0, 1);
    machine.memory_mut().write_u32(BASE, ri(4, 3, 3, 5)).unwrap();
    machine.thread_mut(0).set_pc(BASE);
    machine.run(0, 1);
    assert_eq!(machine.thread(0).scalar(sreg(3)), 6);
    let mut other = npu_sim::Memory::new(1 << 20);
    other.write_u32(BASE, ri(4, 3, 3, 10)).unwrap();
    *machine.memory_mut() = other;
    machine.thread_mut(0).set_pc(BASE);
    machine.run(0, 1);
    assert_eq!(machine.thread(0).scalar(sreg(3)), 16);
}

#[test]
fn memory_is_bounded() {
    let config = Config {
        memory_limit: 1 << 16,
        ..Config::default()
    };
    // store; addi s40, s40, 255 x 16; loop.
    let mut machine = at(config, &[mem(34, 1, 40, 0), rr(4, 40, 40, 2, SSS), jra(0, -8)]);
    machine.thread_mut(0).set_scalar(sreg(2), 4096);
    let stop = machine.run(0, 1000);
    assert!(matches!(stop, Stop::MemoryFull { pc: BASE, .. }), "{stop}");
}

#[test]
fn a_trace_shows_every_instruction() {
    let mut machine = program(&[ri(4, 1, 1, 5), mem(34, 1, 40, 4), jra(0, 8)]);
    let mut lines = Vec::new();
    machine.run_traced(0, 3, &mut |event| lines.push(event.to_string()));
    assert!(lines[0].starts_with("0 00001000 44041028"), "{}", lines[0]);
    assert!(lines[0].contains("addi s1, s1, 5"), "{}", lines[0]);
    assert!(lines[0].ends_with("s1=00000005"), "{}", lines[0]);
    assert!(lines[1].ends_with("to 00100004"), "{}", lines[1]);
    assert!(lines[2].ends_with("-> 00001010"), "{}", lines[2]);
}

#[test]
fn stop_addresses_in_code_that_was_run() {
    // Stop addresses are set and removed between runs, also in a page that is shared with all
    // unwritten memory.
    let mut machine = program(&[ri(4, 1, 1, 1), ri(4, 1, 1, 1), jra(0, -8)]);
    assert_eq!(machine.run(0, 30), Stop::StepLimit);
    let pc = BASE + 4;
    machine.add_breakpoint(pc);
    assert_eq!(machine.run(0, 30), Stop::Breakpoint { pc });
    machine.remove_breakpoint(pc);
    assert_eq!(machine.run(0, 30), Stop::StepLimit);
    machine.thread_mut(0).set_pc(0x7000);
    assert_eq!(machine.run(0, 8), Stop::StepLimit);
    machine.thread_mut(0).set_pc(0x7000);
    let pc = 0x7008;
    machine.add_breakpoint(pc);
    assert_eq!(machine.run(0, 8), Stop::Breakpoint { pc });
    machine.memory_mut().write_u32(0x7010, 1).unwrap();
    machine.thread_mut(0).set_pc(0x7000);
    assert_eq!(machine.run(0, 8), Stop::Breakpoint { pc });
}

#[test]
fn a_link_from_the_pc() {
    let machine = done(&[NOP, ri(4, 62, 63, 8), jba(0, 1, 0)], |m| {
        m.thread_mut(0).set_scalar(sreg(1), 0x2000);
    });
    assert_eq!(machine.thread(0).scalar(sreg(62)), BASE + 12);
    assert_eq!(machine.thread(0).pc(), 0x2000);
}
