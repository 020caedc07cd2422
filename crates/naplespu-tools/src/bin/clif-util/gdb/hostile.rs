//! Tests with arbitrary bytes on the connection: the stub must not panic, and must end when they
//! do.

use super::control::Control;
use super::session;
use gdbstub::conn::{Connection, ConnectionExt};
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_sim::{Config, Machine};
use std::io::{Error, ErrorKind};

/// A peer with a fixed script that ignores all answers. Its end is that of a closed socket: the
/// socket is readable, and reading fails.
struct Script<'a> {
    bytes: &'a [u8],
    answers: usize,
}

/// The number of answer bytes that counts as a flood.
const FLOOD: usize = 1 << 24;

impl Connection for Script<'_> {
    type Error = Error;

    fn write(&mut self, _: u8) -> Result<(), Error> {
        self.answers += 1;
        assert!(self.answers < FLOOD, "the stub does not end");
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl ConnectionExt for Script<'_> {
    fn read(&mut self) -> Result<u8, Error> {
        let (&first, rest) = self.bytes.split_first().ok_or(ErrorKind::UnexpectedEof)?;
        self.bytes = rest;
        Ok(first)
    }

    fn peek(&mut self) -> Result<Option<u8>, Error> {
        Ok(Some(self.bytes.first().copied().unwrap_or(0)))
    }
}

/// Returns a machine with three threads that meet at a barrier, load, store, trap on a misaligned
/// address, and loop for ever.
fn control() -> Control {
    let source = "movei s0, 5; movei s1, 2\nbarrier s0, s1\nagain: load32 s2, (s3)\nstore32 s2, (s3)\naddi s3, s3, 2\njmp again\n";
    let object = assemble(source, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
    let image = link(&object, &Placement::default()).unwrap().image;
    let mut machine = Machine::new(Config::default());
    for segment in image.segments {
        machine.memory_mut().write(segment.address, &segment.bytes).unwrap();
    }
    machine.enable(0, 0b111);
    Control::new(machine, None)
}

/// Sends bytes from a peer. Ignores the outcome of the session.
fn say(bytes: &[u8]) {
    let _ = session(&mut control(), Script { bytes, answers: 0 });
}

fn packet(body: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0u8, |sum, &b| sum.wrapping_add(b));
    let mut out = vec![b'$'];
    out.extend_from_slice(body);
    out.extend_from_slice(format!("#{sum:02x}").as_bytes());
    out
}

/// Packets, with `@` as placeholder of a number.
const PACKETS: [&str; 50] = [
    "qSupported:multiprocess+;xmlRegisters=arc;qXfer:features:read+",
    "QStartNoAckMode",
    "?",
    "g",
    "G@",
    "p@",
    "P@=@",
    "m@,@",
    "M@,@:@",
    "X@,@:@",
    "Z0,@,@",
    "Z1,@,@",
    "Z2,@,@",
    "Z3,@,@",
    "Z4,@,@",
    "Z9,@,@",
    "z0,@,@",
    "z2,@,@",
    "Hg@",
    "Hc@",
    "Hgp@.@",
    "T@",
    "qC",
    "qfThreadInfo",
    "qsThreadInfo",
    "qThreadExtraInfo,@",
    "qThreadExtraInfo,p@.@",
    "qXfer:features:read:target.xml:@,@",
    "qXfer:features:read:@:@,@",
    "qXfer:memory-map:read::@,@",
    "qHostInfo",
    "qProcessInfo",
    "qRegisterInfo@",
    "qAttached:@",
    "vCont?",
    "vCont;c",
    "vCont;s:@",
    "vCont;s:@;c",
    "vCont;c:@;s:@",
    "vCont;r@,@:@;c",
    "vCont;S@:@;C@",
    "vCont;t",
    "vMustReplyEmpty",
    "vAttach;@",
    "vRun;@",
    "c@",
    "s@",
    "bc",
    "QTinit",
    "QThreadSuffixSupported",
];

/// Commands of `qRcmd`, with the same placeholder.
const COMMANDS: [&str; 11] = [
    "scratchpad @ @ @",
    "scratchpad set @ @ @",
    "spm @",
    "threads",
    "where @",
    "find @",
    "control @",
    "code @ @",
    "findings",
    "help",
    "@ \u{fffd}",
];

const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "-1",
    "c",
    "3f",
    "7f",
    "80",
    "c5",
    "c6",
    "400",
    "ffff",
    "7fffffff",
    "80000000",
    "fffffffc",
    "ffffffff",
    "100000000",
    "ffffffffffffffff0",
];

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn fill(&mut self, template: &str, prefix: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for byte in template.bytes() {
            if byte == b'@' {
                out.extend_from_slice(prefix.as_bytes());
                out.extend_from_slice(NUMBERS[self.below(NUMBERS.len())].as_bytes());
            } else {
                out.push(byte);
            }
        }
        out
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut body = if self.below(5) == 0 {
            let command = COMMANDS[self.below(COMMANDS.len())];
            let command = self.fill(command, "0x");
            let hex: String = command.iter().map(|b| format!("{b:02x}")).collect();
            format!("qRcmd,{hex}").into_bytes()
        } else {
            let template = PACKETS[self.below(PACKETS.len())];
            self.fill(template, "")
        };
        if self.below(6) == 0 {
            self.damage(&mut body);
        }
        let mut out = packet(&body);
        match self.below(12) {
            0 => self.damage(&mut out),
            1 => out.push([b'+', b'-', 3, b'$', 0xff][self.below(5)]),
            _ => {}
        }
        out
    }

    /// Changes, drops or duplicates some bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(3) {
                0 => bytes[at] = self.below(256) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[at]),
            }
        }
    }
}

#[test]
fn every_packet_with_every_number() {
    for template in PACKETS {
        for number in NUMBERS {
            let mut bytes = packet(template.replace('@', number).as_bytes());
            bytes.extend(packet(b"g"));
            say(&bytes);
        }
    }
    for template in COMMANDS {
        for number in NUMBERS {
            let command = template.replace('@', &format!("0x{number}"));
            let hex: String = command.bytes().map(|b| format!("{b:02x}")).collect();
            say(&packet(format!("qRcmd,{hex}").as_bytes()));
        }
    }
}

#[test]
fn random_sessions_end() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..=random.below(24) {
            bytes.extend(random.packet());
        }
        say(&bytes);
    }
}

#[test]
fn random_bytes_end() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let likely = b"$#+-}*\x03:;,=gGpPmMXzZqQvHcs0123456789abcdef";
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..random.below(200))
            .map(|_| match random.below(4) {
                0 => random.below(256) as u8,
                _ => likely[random.below(likely.len())],
            })
            .collect();
        say(&bytes);
    }
}

/// Packets above the accepted size, without an end, and with wrong lengths.
#[test]
fn long_packets_end() {
    let long = vec![b'0'; 3 * super::PACKET];
    for start in [
        "$",
        "$G",
        "$M0,ffffffff:",
        "$M0,4:",
        "$X0,ffffffff:",
        "$qRcmd,",
        "$vCont;",
        "$P0=",
    ] {
        let open = [start.as_bytes(), &long].concat();
        say(&open);
        say(&packet(&open[1..]));
        say(&packet(&open[1..super::PACKET - 8]));
    }
}
