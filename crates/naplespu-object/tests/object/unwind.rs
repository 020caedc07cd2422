//! Checks `.eh_frame` while programs run step by step. A list of the active calls records their
//! registers at entry, and at each instruction unwinding has to return the same values.

use crate::common::{address, assembled, compiled, image, isa, linked, linked_for};
use naplespu_reader::ClifFile;
use naplespu_reader::config::FileConfigs;
use npu_link::debug::{Frames, Place, Rules};
use npu_link::{LinkOptions, MemoryLayout, Program};
use npu_mc::{Opcode, Reg, SReg, VReg};
use npu_sim::{Lanes, Machine, Progress};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The maximum number of checked instructions of a program.
const STEPS: usize = 200_000;

/// The maximum number of calls of a file's run lines.
const CALLS: usize = 12;

/// An active call.
struct Frame {
    sp: u32,
    back: u32,
    scalars: Vec<u32>,
    vectors: Vec<Lanes>,
}

fn scalars() -> impl Iterator<Item = SReg> {
    (50..=57).filter_map(SReg::new).chain([SReg::FP])
}

fn vectors() -> impl Iterator<Item = VReg> {
    [56, 57, 58, 60, 61, 62].into_iter().filter_map(VReg::new)
}

impl Frame {
    fn at_entry(machine: &Machine) -> Self {
        let thread = machine.thread(0);
        Self {
            sp: thread.scalar(SReg::SP),
            back: thread.scalar(SReg::RA),
            scalars: scalars().map(|reg| thread.scalar(reg)).collect(),
            vectors: vectors().map(|reg| *thread.vector(reg)).collect(),
        }
    }
}

/// The results of a run.
#[derive(Default)]
struct Seen {
    /// The number of checked instructions, each counted once for a program.
    places: usize,
    deepest: usize,
    tail_calls: usize,
}

/// Runs a program on one thread and checks the tables.
fn check(name: &str, program: &Program) -> Seen {
    let section = program
        .sections
        .iter()
        .find(|section| section.name == ".eh_frame")
        .unwrap();
    let frames = Frames::new(&section.bytes, section.address).unwrap();
    let mut rules: HashMap<u32, Option<Rules>> = HashMap::new();
    let starts: HashSet<u32> = frames.functions().map(|(start, _)| start).collect();
    let image = image(program);
    let mut machine = Machine::new(npu_sim::Config {
        coherent: true,
        ..npu_sim::Config::default()
    });
    machine.load(&image).unwrap();
    machine.enable(0, 1);
    machine.boot(0, image.entry.unwrap());
    let mut stack: Vec<Frame> = Vec::new();
    let mut seen = Seen::default();
    let mut places = HashSet::new();
    for _ in 0..STEPS {
        let pc = machine.thread(0).pc();
        let known = rules.entry(pc).or_insert_with(|| frames.rules(pc).unwrap());
        if let (Some(known), Some(frame)) = (known, stack.last()) {
            compare(&format!("{name} at {pc:#x}"), &machine, known, frame);
            places.insert(pc);
            seen.places = places.len();
        }
        let opcode = npu_mc::decode(machine.memory().read_u32(pc)).unwrap().opcode;
        let step = machine.step(0).unwrap();
        match step.progress {
            Progress::Ended(_) => return seen,
            Progress::Next | Progress::Taken | Progress::Opens => {}
            other => panic!("{name} at {pc:#x}: {other:?}"),
        }
        let back = machine.thread(0).scalar(SReg::RA);
        match opcode {
            Opcode::JMPSR_OFF | Opcode::JMPSR_REG => stack.push(Frame::at_entry(&machine)),
            Opcode::JUMPREG if back == pc + 4 => stack.push(Frame::at_entry(&machine)),
            Opcode::JRET => {
                let frame = stack
                    .pop()
                    .unwrap_or_else(|| panic!("{name} returns at {pc:#x} from nowhere"));
                assert_eq!(frame.back, step.next_pc, "{name} at {pc:#x}");
            }
            Opcode::JMP | Opcode::JUMPREG if starts.contains(&step.next_pc) => {
                let frame = stack.pop().unwrap();
                assert_eq!(frame.back, back, "{name}: a tail call at {pc:#x}");
                stack.push(Frame::at_entry(&machine));
                seen.tail_calls += 1;
            }
            _ => {}
        }
        seen.deepest = seen.deepest.max(stack.len());
    }
    seen
}

fn compare(place: &str, machine: &Machine, rules: &Rules, frame: &Frame) {
    let thread = machine.thread(0);
    let (base, distance) = rules.cfa;
    let cfa = thread.scalar(base).wrapping_add_signed(distance);
    assert_eq!(cfa, frame.sp, "{place}: the frame");
    let value = |reg: SReg| match rules.place(Reg::S(reg)) {
        None => thread.scalar(reg),
        Some(Place::Memory(offset)) => machine.memory().read_u32(cfa.wrapping_add_signed(offset)),
        Some(Place::Lost) => panic!("{place}: {reg} is lost"),
    };
    assert_eq!(value(SReg::RA), frame.back, "{place}: the return address");
    for (reg, wanted) in scalars().zip(&frame.scalars) {
        assert_eq!(value(reg), *wanted, "{place}: {reg}, cfa {cfa:#x}");
    }
    for (reg, wanted) in vectors().zip(&frame.vectors) {
        match rules.place(Reg::V(reg)) {
            None => assert!(thread.vector(reg) == wanted, "{place}: {reg}"),
            Some(Place::Memory(offset)) => {
                let start = cfa.wrapping_add_signed(offset);
                let lanes = (0..16).map(|lane| machine.memory().read_u32(start + 4 * lane));
                assert!(lanes.eq(wanted.0.iter().copied()), "{place}: {reg}, cfa {cfa:#x}");
            }
            Some(Place::Lost) => panic!("{place}: {reg} is lost"),
        }
    }
}

/// Returns a `main` with the calls of the run lines that have only small integers; `None` without
/// such lines.
fn caller(text: &str) -> Option<String> {
    let mut out = "        .globl main\nmain:   addi sp, sp, -64\n        store32 ra, 60(sp)\n".to_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("; run: %"));
    let mut count = 0;
    for line in lines {
        let Some((call, rest)) = line.split_once(')') else {
            continue;
        };
        let Some((name, arguments)) = call.split_once('(') else {
            continue;
        };
        let arguments: Option<Vec<i32>> = match arguments {
            "" => Some(Vec::new()),
            list => list.split(", ").map(|argument| argument.parse().ok()).collect(),
        };
        let start = format!("function %{name}(");
        let signature = text.lines().find_map(|line| line.strip_prefix(start.as_str()))?;
        let large = ["i64", "i128", "f64", "f128", "f32", "f16", "x2", "x4", "x8", "x16"];
        let is_small = !large.iter().any(|ty| signature.contains(ty));
        let Some(arguments) = arguments.filter(|list| list.len() <= 8 && is_small && rest.starts_with(" ==")) else {
            continue;
        };
        for (number, argument) in arguments.into_iter().enumerate() {
            let (high, low) = ((argument as u32) >> 16, argument as u32 & 0xffff);
            writeln!(out, "        moveih s{number}, {high}\n        moveil s{number}, {low}").unwrap();
        }
        writeln!(out, "        jmpsr \"{name}\"").unwrap();
        count += 1;
        if count == CALLS {
            break;
        }
    }
    out.push_str("        load32 ra, 60(sp)\n        addi sp, sp, 64\n        jret\n");
    (count > 0).then_some(out)
}

/// Checks the files of a directory whose programs link; returns their number.
fn folder(name: &str, settings: &[&str], all: &mut Seen) -> usize {
    let pins: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests").join(name);
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut count = 0;
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "clif"))
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        // The pinned register is not preserved, and the list of calls assumes one stack.
        let others = ["enable_pinned_reg", "stack_switch"];
        let Some(main) = caller(&text).filter(|_| !others.iter().any(|other| text.contains(other))) else {
            continue;
        };
        let header = ClifFile::parse(&name, text.as_bytes()).header;
        let configs = FileConfigs::read(&header, None, &pins, &mut Vec::new());
        let Some(config) = configs.list.first() else { continue };
        let isa = config.isa().unwrap();
        let files = [assembled(&main), compiled(&name, &text, &isa, false)];
        // Stack for deep recursion.
        let options = LinkOptions {
            layout: MemoryLayout {
                stacks: 0x0100_0000,
                stack_size: 0x0040_0000,
                ..MemoryLayout::DEFAULT
            },
            ..LinkOptions::default()
        };
        let Ok(program) = linked_for(&isa, &files, &mut [], &options) else {
            continue;
        };
        let seen = check(&name, &program);
        all.places += seen.places;
        all.deepest = all.deepest.max(seen.deepest);
        all.tail_calls += seen.tail_calls;
        count += 1;
    }
    count
}

#[test]
fn kernels_unwind_at_every_instruction() {
    let mut seen = Seen::default();
    for settings in [&["opt_level=none"][..], &["opt_level=speed"]] {
        let count = folder("corpus", settings, &mut seen);
        assert!(count >= 31, "{count} kernels");
    }
    assert!(
        seen.places > 5000 && seen.deepest > 2,
        "{} {}",
        seen.places,
        seen.deepest
    );
}

#[test]
fn calls_tail_calls_and_large_frames_unwind() {
    let mut seen = Seen::default();
    let mut count = 0;
    for settings in [&["opt_level=none"][..], &["opt_level=speed"]] {
        for name in ["call", "stack", "control"] {
            count += folder(name, settings, &mut seen);
        }
    }
    assert!(
        count > 20 && seen.tail_calls > 0,
        "{count} files, {} tail calls",
        seen.tail_calls
    );
}

/// A program links some functions of an object with function sections.
#[test]
fn entries_of_functions_that_are_left_out_go() {
    let text = "function %used(i32) -> i32 {
block0(v0: i32):
    return v0
}
function %unused(i32) -> i32 {
block0(v0: i32):
    return v0
}
";
    let files = [
        assembled(".globl main\nmain: jmp used\n"),
        compiled("k.clif", text, &isa(&[]), true),
    ];
    for (gc_sections, count) in [(false, 2), (true, 1)] {
        let options = LinkOptions {
            gc_sections,
            ..LinkOptions::default()
        };
        let program = linked(&files, &mut [], &options).unwrap();
        let section = program
            .sections
            .iter()
            .find(|section| section.name == ".eh_frame")
            .unwrap();
        let frames = Frames::new(&section.bytes, section.address).unwrap();
        let starts: Vec<u32> = frames.functions().map(|(start, _)| start).collect();
        assert_eq!((starts.len(), starts[0]), (count, address(&program, "used")));
        assert!(section.bytes.ends_with(&[0; 4]));
    }
    // Objects for a program without tables.
    let files = [
        files[0].clone(),
        compiled("k.clif", text, &isa(&["unwind_info=false"]), true),
    ];
    let program = linked(&files, &mut [], &LinkOptions::default()).unwrap();
    let section = program
        .sections
        .iter()
        .find(|section| section.name == ".eh_frame")
        .unwrap();
    assert_eq!(section.size, 0);
}

/// Damaged or unsupported tables are refused with their position.
#[test]
fn tables_that_are_refused() {
    let entry = ".byte 1\n.asciz \"zR\"\n.byte 4, 0x7c, 62, 1, 0x0b, 0x0c, 61, 0\n";
    let personality =
        ".long 24, 0\n.byte 1\n.asciz \"zPR\"\n.byte 4, 0x7c, 62, 6, 0x0b\n.long 0\n.byte 0x0b, 0x0c, 61, 0, 0, 0\n";
    let cases = [
        (".long 16".to_owned(), 0, "does not fit"),
        (".byte 1".to_owned(), 0, "cut off"),
        (".long 3\n.byte 0, 0, 0".to_owned(), 0, "does not fit"),
        (".long 5, 0\n.byte 1".to_owned(), 0, "does not end at a word"),
        (
            format!(".long 16, 0\n{entry}.long 16, 20, main, 4, 0"),
            20,
            "without a common information entry",
        ),
        (personality.to_owned(), 0, "exception handlers in"),
    ];
    for (table, offset, part) in cases {
        let source = format!(".globl main\nmain: jret\n.section .eh_frame, \"a\"\n{table}\n");
        let errors = linked(&[assembled(&source)], &mut [], &LinkOptions::default()).unwrap_err();
        let text = errors[0].to_string();
        assert!(
            text.starts_with(&format!("a.o:(.eh_frame+{offset:#x}): ")) && text.contains(part),
            "{text}"
        );
    }
}
