//! Tests `clif-util sim --gdb` from the debugger's side: GDB's remote protocol over a loopback
//! socket.

use npu_link::{Format, Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_mc::{SReg, VReg};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program that stores 1, 2 and 3 to 0x2000, uses the scratchpad and a vector, prints `x` and
/// ends.
const PROGRAM: &str = "
        .org    0x400
start:  movei   s1, 0x2000
        movei   s0, 1
loop:   store32 s0, (s1)
        addi    s0, s0, 1
        cmplti  s2, s0, 4
        bnez    s2, loop
        movei   s3, 64
        store32_scratchpad s0, (s3)
        moveih  rm, 0
        moveil  rm, 0xffff
        move_i32 v3, s0
        moveih  s4, 0xff00
        moveil  s4, 0
        movei   s5, 'x'
        store32 s5, (s4)
        movei   s6, 2
        movei   s7, 11
        write_cr s6, s7
end:    jmp     end
";

fn address(label: &str) -> u32 {
    let object = assemble(PROGRAM, &Options::default()).unwrap();
    let linked = link(&object, &Placement::default()).unwrap();
    let index = object.symbols.iter().position(|s| s.name == label).unwrap();
    let npu_mc::asm::SymbolValue::Place { offset, .. } = object.symbols[index].value else {
        panic!("{label}")
    };
    assert!(linked.image.segments.iter().any(|s| s.address <= offset));
    offset
}

struct Session {
    child: Child,
    stream: TcpStream,
    _folder: tempfile::TempDir,
}

impl Session {
    fn new(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program.hex");
        let object = assemble(PROGRAM, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
        let linked = link(&object, &Placement::default()).unwrap();
        let text = linked.image.write(Format::HexWords).unwrap();
        std::fs::write(&path, text).unwrap();
        Self::with(folder, &path, arguments)
    }

    /// Starts a session with a program file.
    fn with(folder: tempfile::TempDir, path: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .arg("sim")
            .arg(path)
            .args(["--gdb", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, place) = line.trim_end().rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let stream = TcpStream::connect(place).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut session = Self {
            child,
            stream,
            _folder: folder,
        };
        assert_eq!(session.ask("QStartNoAckMode"), "OK");
        // The stub expects an acknowledgment of this packet and of no later one.
        session.ask("qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+;qXfer:features:read+");
        session
    }

    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        self.stream
            .write_all(format!("${packet}#{sum:02x}").as_bytes())
            .unwrap();
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// Receives the next packet and decodes it.
    fn receive(&mut self) -> String {
        while self.byte() != b'$' {}
        let mut packet: Vec<u8> = Vec::new();
        let mut sum = 0u8;
        loop {
            let byte = self.byte();
            if byte == b'#' {
                break;
            }
            sum = sum.wrapping_add(byte);
            packet.push(byte);
        }
        let check = [self.byte(), self.byte()];
        let check = u8::from_str_radix(std::str::from_utf8(&check).unwrap(), 16).unwrap();
        assert_eq!(sum, check);
        // `c*n` is run-length encoding of the character `c`; after `}` bit 5 of the next character
        // is inverted.
        let mut out: Vec<u8> = Vec::new();
        let mut bytes = packet.into_iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'*' => {
                    let count = bytes.next().unwrap() - 29;
                    let last = *out.last().unwrap();
                    out.extend(std::iter::repeat_n(last, usize::from(count)));
                }
                b'}' => out.push(bytes.next().unwrap() ^ 0x20),
                byte => out.push(byte),
            }
        }
        String::from_utf8(out).unwrap()
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        let answer = self.receive();
        if packet == "QStartNoAckMode" {
            self.stream.write_all(b"+").unwrap();
        }
        answer
    }

    fn register(&mut self, number: u16) -> u32 {
        word(&self.ask(&format!("p{number:x}")))
    }

    fn pc(&mut self) -> u32 {
        self.register(SReg::PC.dwarf())
    }

    /// Returns the answer to a command of the simulator's monitor.
    fn monitor(&mut self, command: &str) -> String {
        let hex: String = command.bytes().map(|b| format!("{b:02x}")).collect();
        self.send(&format!("qRcmd,{hex}"));
        let mut out = String::new();
        loop {
            let packet = self.receive();
            match packet.strip_prefix('O').filter(|_| packet != "OK") {
                Some(hex) => {
                    let pairs = hex.as_bytes().chunks(2);
                    out.extend(pairs.map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap() as char));
                }
                None => {
                    assert_eq!(packet, "OK");
                    return out;
                }
            }
        }
    }

    /// Ends the session. Returns the exit status and the rest of the program's output.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.stream);
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

/// Parses a word of 8 hexadecimal digits, least significant byte first.
fn word(hex: &str) -> u32 {
    u32::from_str_radix(hex, 16)
        .unwrap_or_else(|_| panic!("{hex}"))
        .swap_bytes()
}

fn hex(word: u32) -> String {
    format!("{:08x}", word.swap_bytes())
}

#[test]
fn the_description_names_all_registers() {
    let mut session = Session::new(&[]);
    let mut xml = String::new();
    loop {
        let part = session.ask(&format!("qXfer:features:read:target.xml:{:x},800", xml.len()));
        xml.push_str(&part[1..]);
        if part.starts_with('l') {
            break;
        }
        assert!(part.starts_with('m'), "{part}");
    }
    for (name, number) in SReg::all()
        .map(|r| (r.name(), r.dwarf()))
        .chain(VReg::all().map(|r| (r.name(), r.dwarf())))
    {
        let line = xml
            .lines()
            .find(|l| l.starts_with(&format!("<reg name=\"{name}\" ")))
            .unwrap();
        assert!(line.contains(&format!("regnum=\"{number}\"")), "{line}");
    }
    // GDB requires 70 more registers for the architecture of the description: 32 r, 32 f and 6
    // special ones. They are aliases.
    assert_eq!(xml.matches("<reg ").count(), 128 + 70);
    // All registers in one packet: 64 words, 64 vectors of 16 words, and 70 words.
    assert_eq!(session.ask("g").len(), 8 * (64 + 64 * 16 + 70));
}

/// The standard registers of the architecture are aliases of the same registers. Those without a
/// counterpart read as 0 and cannot be changed.
#[test]
fn standard_names_are_other_names() {
    let mut session = Session::new(&[]);
    for (standard, own) in [(128 + 9, 9), (128 + 32 + 29, 61), (128 + 66, 62)] {
        assert_eq!(session.ask(&format!("P{standard:x}={}", hex(0x100 + own))), "OK");
        assert_eq!(session.register(own as u16), 0x100 + own);
        assert_eq!(session.ask(&format!("P{own:x}={}", hex(7))), "OK");
        assert_eq!(session.register(standard), 7);
    }
    for zero in [64, 65, 67, 68, 69].map(|k| 128 + k) {
        assert_eq!(session.register(zero), 0);
        assert_eq!(session.ask(&format!("P{zero:x}={}", hex(0))), "OK");
        assert!(session.ask(&format!("P{zero:x}={}", hex(1))).starts_with('E'));
    }
    // In a packet with all registers, the name whose value changes takes effect.
    let all = session.ask("g");
    let standard = 8 * (64 + 64 * 16 + 9);
    assert_eq!((&all[8 * 9..8 * 10], &all[standard..][..8]), (&*hex(7), &*hex(7)));
    let changed = format!("{}{}{}", &all[..standard], hex(8), &all[standard + 8..]);
    assert_eq!(session.ask(&format!("G{changed}")), "OK");
    assert_eq!(session.register(9), 8);
    let changed = format!("{}{}{}", &changed[..8 * 9], hex(9), &changed[8 * 10..]);
    assert_eq!(session.ask(&format!("G{changed}")), "OK");
    assert_eq!(session.register(9), 9);
}

/// Nonexistent threads, registers and addresses are errors of a packet and do not end the session.
#[test]
fn what_there_is_not_is_refused() {
    let mut session = Session::new(&["--threads", "3"]);
    assert_eq!(session.ask("Hg5"), "OK");
    for packet in ["g", "p0", "P0=00000000", "m400,4"] {
        let answer = session.ask(packet);
        assert!(answer.starts_with('E'), "{packet}: {answer}");
    }
    assert_eq!(session.ask("Hg2"), "OK");
    assert_eq!(session.ask("p7fff"), "");
    assert!(session.ask("m0,ffffffff").starts_with('E'));
    assert_eq!(session.ask("mfffffffc,4").len(), 8);
    assert_eq!(
        session.monitor("control 9"),
        "no such thread; the threads are 1, 2, 3\n"
    );
}

#[test]
fn registers_and_memory_are_read_and_written() {
    let mut session = Session::new(&[]);
    assert_eq!(session.pc(), 0x400);
    assert_eq!(
        session.ask(&format!("P{:x}={}", SReg::S9.dwarf(), hex(0x1234_5678))),
        "OK"
    );
    assert_eq!(session.register(SReg::S9.dwarf()), 0x1234_5678);
    let lanes: String = (0..16).map(hex).collect();
    assert_eq!(session.ask(&format!("P{:x}={lanes}", VReg::V5.dwarf())), "OK");
    assert_eq!(session.ask(&format!("p{:x}", VReg::V5.dwarf())), lanes);
    let all = session.ask("g");
    assert_eq!(&all[8 * 9..8 * 10], hex(0x1234_5678));
    assert_eq!(&all[8 * (64 + 16 * 5)..][..128], lanes);
    let changed = all.replacen(&hex(0x1234_5678), &hex(7), 1);
    assert_eq!(session.ask(&format!("G{changed}")), "OK");
    assert_eq!(session.register(SReg::S9.dwarf()), 7);
    assert_eq!(session.ask("M2100,4:01020304"), "OK");
    assert_eq!(session.ask("m2100,4"), "01020304");
    assert_eq!(session.ask("m400,4"), hex(0x6204_0000 | 0x2000 << 2));
}

#[test]
fn breakpoints_steps_and_the_end() {
    let mut session = Session::new(&[]);
    let looped = address("loop");
    assert_eq!(session.ask(&format!("Z0,{looped:x},4")), "OK");
    for iteration in 1..=3 {
        let stop = session.ask("vCont;c");
        assert!(stop.starts_with("T05") && stop.contains("swbreak"), "{stop}");
        assert_eq!((session.pc(), session.register(0)), (looped, iteration));
    }
    let stop = session.ask("vCont;s:1;c");
    assert!(stop.starts_with("T05"), "{stop}");
    assert_eq!(session.pc(), looped + 4);
    assert_eq!(session.ask("m2000,4"), hex(3));
    assert_eq!(session.ask(&format!("z0,{looped:x},4")), "OK");
    assert_eq!(session.ask("vCont;c"), "W00");
    let (status, output) = session.end();
    assert_eq!((status, output.as_str()), (Some(0), "x"));
}

#[test]
fn watchpoints_stop_behind_the_access() {
    let mut session = Session::new(&[]);
    assert_eq!(session.ask("Z2,2002,1"), "OK");
    for value in 1..=2 {
        let stop = session.ask("vCont;c");
        assert!(
            stop.starts_with("T05") && stop.contains("watch:") && stop.contains("2002"),
            "{stop}"
        );
        assert_eq!(session.pc(), address("loop") + 4);
        assert_eq!(session.ask("m2000,4"), hex(value));
    }
    assert_eq!(session.ask("z2,2002,1"), "OK");
    // The program never reads that address.
    assert_eq!(session.ask("Z3,2000,4"), "OK");
    assert_eq!(session.ask("vCont;c"), "W00");
}

/// The symbols, lines and frames of an ELF file are available by monitor commands, because the
/// protocol does not have packets for them.
#[test]
fn monitor_commands_know_calls_and_lines() {
    let folder = tempfile::tempdir().unwrap();
    let source = "function %inner(i32) -> i32 {
block0(v0: i32):
    v1 = imul v0, v0
    return v1
}
function %main() -> i32 {
    fn0 = %inner(i32) -> i32
block0:
    v0 = iconst.i32 7
    v1 = call fn0(v0)
    v2 = iadd v1, v0
    return v2
}
";
    std::fs::write(folder.path().join("k.clif"), source).unwrap();
    for line in ["compile --emit=obj -o k.o k.clif", "link k.o -o p.elf"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        let done = command
            .args(line.split(' '))
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(done.success(), "{line}");
    }
    let path = folder.path().join("p.elf");
    let mut session = Session::with(folder, &path, &[]);
    let found = session.monitor("find inner");
    let address = found
        .strip_prefix("0x")
        .and_then(|rest| rest.split(' ').next())
        .unwrap();
    assert_eq!(found, format!("0x{address} in inner at k.clif:3\n"));
    assert_eq!(session.ask(&format!("Z1,{address},4")), "OK");
    session.ask("vCont;c");
    let calls = session.monitor("where");
    let lines: Vec<&str> = calls.lines().collect();
    assert!(lines.len() >= 3, "{calls}");
    assert_eq!(lines[0], format!("#0   0x{address} in inner at k.clif:3"));
    assert!(
        lines[1].starts_with("#1   0x") && lines[1].ends_with(" at k.clif:10"),
        "{calls}"
    );
    assert!(lines[2].contains(" in _start+"), "{calls}");
    assert_eq!(session.monitor("where 1"), calls);
    assert_eq!(session.monitor("where 2"), "no such thread; the threads are 1\n");
    assert_eq!(session.monitor("find nothing"), "the program has no symbol `nothing`\n");
    assert_eq!(session.monitor(&format!("find 0x{address}")), found);
    session.send("k");
    session.end();
    let mut session = Session::new(&[]);
    assert!(session.monitor("where").starts_with("the program has no symbols"));
    session.send("k");
    session.end();
}

#[test]
fn monitor_commands_reach_the_scratchpad() {
    let mut session = Session::new(&[]);
    let end = address("end");
    assert_eq!(session.ask(&format!("Z1,{end:x},4")), "OK");
    let stop = session.ask("vCont;c");
    assert!(stop.contains("hwbreak") || stop.contains("swbreak"), "{stop}");
    assert_eq!(session.monitor("scratchpad 64 2"), "00000040: 00000004 00000000\n");
    assert_eq!(session.monitor("scratchpad set 0x48 0xdeadbeef"), "");
    assert_eq!(session.monitor("scratchpad 0x48"), "00000048: deadbeef\n");
    assert_eq!(
        session.monitor("scratchpad 0xfffe"),
        "the scratchpad has 0x10000 bytes\n"
    );
    assert!(session.monitor("nonsense").contains("scratchpad set"));
    assert!(session.monitor("threads").starts_with("1 core 0 thread 0: "));
    assert!(session.monitor("control").contains("ThreadStatus") || session.monitor("control").contains("11"));
    assert_eq!(session.monitor("findings"), "none\n");
    // All lanes of the vector have the value of the scalar.
    assert_eq!(session.ask(&format!("p{:x}", VReg::V3.dwarf())), hex(4).repeat(16));
    assert!(session.ask("qfThreadInfo").starts_with('m'));
    session.send("k");
    let (status, output) = session.end();
    assert_eq!((status, output.as_str()), (Some(0), "x"));
}

#[test]
fn a_running_program_is_interrupted() {
    let mut session = Session::new(&["--pc", "0x448"]);
    // The last instruction jumps to itself without setting the status, so the program hangs, and
    // the stop reports that.
    let end = address("end");
    assert_eq!(end, 0x448);
    let stop = session.ask("vCont;c");
    assert!(stop.starts_with("T04"), "{stop}");
    // A longer loop runs until an interrupt: jmp . + 4; jmp . - 4
    assert_eq!(
        session.ask(&format!("M3000,8:{}{}", hex(0x7800_0004), hex(0x7803_fffc))),
        "OK"
    );
    assert_eq!(session.ask(&format!("P{:x}={}", SReg::PC.dwarf(), hex(0x3000))), "OK");
    session.send("vCont;c");
    std::thread::yield_now();
    session.stream.write_all(&[3]).unwrap();
    let stop = session.receive();
    assert!(stop.starts_with("T02") || stop.starts_with("S02"), "{stop}");
    assert!([0x3000, 0x3004].contains(&session.pc()));
}

#[test]
fn hardware_threads_are_threads() {
    let mut session = Session::new(&["--threads", "3"]);
    let list = session.ask("qfThreadInfo");
    assert_eq!(list.matches(',').count(), 2, "{list}");
    // Only the second thread executes an instruction.
    let stop = session.ask("vCont;s:2");
    assert!(stop.starts_with("T05"), "{stop}");
    assert!(
        ["thread:p1.2;", "thread:p01.02;"].iter().any(|t| stop.contains(t)),
        "{stop}"
    );
    for (thread, pc) in [(1, 0x400), (2, 0x404), (3, 0x400)] {
        assert_eq!(session.ask(&format!("Hg{thread}")), "OK");
        assert_eq!(session.pc(), pc, "thread {thread}");
    }
    assert_eq!(session.monitor("threads").lines().count(), 3);
    assert_eq!(session.ask("vCont;c"), "W00");
    let (status, output) = session.end();
    assert_eq!((status, output.as_str()), (Some(0), "xxx"));
}
