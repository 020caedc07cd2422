//! Tests with arbitrary bytes on the connection: the stub must not panic, and must end when they
//! do.

use super::control::Control;
use super::session;
use fastrand::Rng;
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
/// address, and loop forever.
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

/// Returns a template with a number in place of each placeholder.
fn fill(template: &str, prefix: &str, mut number: impl FnMut() -> &'static str) -> String {
    let mut parts = template.split('@');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + prefix + number() + part)
}

/// Returns the body of a packet with a command of the monitor.
fn command(command: &str) -> String {
    let hex: String = command.bytes().map(|b| format!("{b:02x}")).collect();
    format!("qRcmd,{hex}")
}

fn pick<T: Copy>(random: &mut Rng, list: &[T]) -> T {
    list[random.usize(..list.len())]
}

/// Returns a random packet, which may be damaged.
fn random_packet(random: &mut Rng) -> Vec<u8> {
    let is_command = random.u8(..5) == 0;
    let template = if is_command {
        pick(random, &COMMANDS)
    } else {
        pick(random, &PACKETS)
    };
    let prefix = if is_command { "0x" } else { "" };
    let body = fill(template, prefix, || pick(random, &NUMBERS));
    let mut body = if is_command { command(&body) } else { body }.into_bytes();
    if random.u8(..6) == 0 {
        damage(random, &mut body);
    }
    let mut out = packet(&body);
    match random.u8(..12) {
        0 => damage(random, &mut out),
        1 => out.push(pick(random, b"+-\x03$\xff")),
        _ => {}
    }
    out
}

/// Changes, drops or duplicates some bytes.
fn damage(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=random.u8(..3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..3) {
            0 => bytes[at] = random.u8(..),
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, bytes[at]),
        }
    }
}

#[test]
fn every_packet_with_every_number() {
    for number in NUMBERS {
        for template in PACKETS {
            let body = fill(template, "", || number);
            say(&[packet(body.as_bytes()), packet(b"g")].concat());
        }
        for template in COMMANDS {
            say(&packet(command(&fill(template, "0x", || number)).as_bytes()));
        }
    }
}

#[test]
fn random_sessions_end() {
    let mut random = Rng::with_seed(0x9E37_79B9);
    for _ in 0..300 {
        let packets: Vec<Vec<u8>> = (0..=random.u8(..24)).map(|_| random_packet(&mut random)).collect();
        say(&packets.concat());
    }
}

#[test]
fn random_bytes_end() {
    let mut random = Rng::with_seed(0xD1B5_4A32);
    let likely = b"$#+-}*\x03:;,=gGpPmMXzZqQvHcs0123456789abcdef";
    for _ in 0..2000 {
        let mut byte = || match random.u8(..4) {
            0 => random.u8(..),
            _ => pick(&mut random, likely),
        };
        say(&(0..100).map(|_| byte()).collect::<Vec<u8>>());
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
