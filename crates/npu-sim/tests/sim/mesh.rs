//! Programs of several cores, with their cycles on the hardware description of the mesh (4 by 4
//! tiles with eight cores, or 2 by 2 tiles with two cores).
//!
//! Each program isolates one behavior: misses by distance, sharing, evictions, barriers, bandwidth,
//! code, and random accesses with all of them.

use super::network::{System, run_program};
use npu_mc::machine;
use npu_sim::Topology;
use std::fmt::Write as _;

/// The registers of the programs: the tile in `s1`, the thread in `s2`, and the number of control
/// register 4 in `s55`.
pub(super) const PROLOGUE: &str = "movei s0, 0\n read_cr s1, s0\n movei s0, 2\n read_cr s2, s0\n movei s55, 4\n";
pub(super) const END: &str = "movei s40, 2\n movei s41, 11\n write_cr s40, s41\n jmp .\n";

pub(super) const MEET: &str = "barrier s50, s51\n";
pub(super) const LOAD: &str = "load32 s5, (s3)\n add_i32 s6, s5, s5\n";
pub(super) const STORE: &str = "store32 s1, (s3)\n load32 s5, (s3)\n add_i32 s6, s5, s5\n";
/// Loads 64 bytes after 64 bytes, `s9` times.
const LOAD_LINES: &str =
    "again:\n load32 s5, (s3)\n add_i32 s6, s5, s5\n addi s3, s3, 64\n subi s9, s9, 1\n bnez s9, again\n";

/// Sets a register to a constant.
pub(super) fn set(register: &str, value: u32) -> String {
    let (low, high) = (value & 0xffff, value >> 16);
    format!("moveil {register}, {low}\n moveih {register}, {high}\n")
}

/// Prepares a barrier of all threads, at the sync master of tile 0.
pub(super) fn crowd(cores: u32, threads: u32) -> String {
    crowd_in(cores, threads, 0)
}

/// Prepares a barrier of all threads, at the sync master of a tile.
fn crowd_in(cores: u32, threads: u32, tile: u32) -> String {
    let id = tile * machine::BARRIER_COUNTERS + 5;
    format!("movei s50, {id}\n movei s51, {}\n", cores * threads - 1)
}

/// Executes the code only on one core.
pub(super) fn only(core: u32, number: usize, code: &str) -> String {
    format!("cmpeqi s20, s1, {core}\n beqz s20, skip{number}\n{code}skip{number}:\n")
}

/// Steps with a barrier after each one, for four lines of a home tile. A step is the code of one core
/// or of all.
fn in_turn(cores: u32, steps: &[(Option<u32>, &str)], home: u32) -> String {
    let address = set("s3", home << 28 | 0x2_0000);
    let mut body = String::new();
    for (number, &(core, code)) in steps.iter().enumerate() {
        body += &core.map_or(code.to_owned(), |core| only(core, number, code));
        body += MEET;
    }
    let crowd = crowd(cores, 1);
    format!("{crowd}{address}movei s9, 4\nagain:\n{MEET}{body}addi s3, s3, 64\n subi s9, s9, 1\n bnez s9, again\n")
}

/// Increments of one word by all cores, twenty times each.
fn increments(cores: u32) -> String {
    let (crowd, address) = (crowd(cores, 1), set("s3", 0x2_0000));
    format!(
        "{crowd}{address}movei s9, 20\n{MEET}again:\n load32 s5, (s3)\n addi s5, s5, 1\n store32 s5, (s3)\n subi s9, s9, 1\n bnez s9, again\n"
    )
}

/// Ten barriers at the sync master of a tile.
fn barriers(cores: u32, threads: u32, tile: u32) -> String {
    let crowd = crowd_in(cores, threads, tile);
    format!("{crowd}movei s9, 10\nagain:\n{MEET}subi s9, s9, 1\n bnez s9, again\n")
}

/// Sixteen lines of its own for each thread.
fn cold(cores: u32, threads: u32, access: &str, own_home: bool) -> String {
    let (crowd, address) = (crowd(cores, threads), set("s3", 0x10_0000));
    let own = if own_home {
        "shli s4, s1, 28\n add_i32 s3, s3, s4\n"
    } else {
        ""
    };
    format!(
        "{crowd}{address}shli s4, s1, 18\n add_i32 s3, s3, s4\n shli s4, s2, 12\n add_i32 s3, s3, s4\n{own}{MEET}movei s9, 16\nagain:\n{access}addi s3, s3, 64\n subi s9, s9, 1\n bnez s9, again\n"
    )
}

/// 32 lines that all threads load after core 0 has loaded them.
fn second_level(cores: u32, threads: u32) -> String {
    let (crowd, address) = (crowd(cores, threads), set("s3", 0x10_0000));
    let first = "bnez s2, warm2\n movei s9, 32\nwarm1:\n load32 s5, (s3)\n add_i32 s6, s5, s5\n addi s3, s3, 64\n subi s9, s9, 1\n bnez s9, warm1\nwarm2:\n";
    let first = only(0, 0, first);
    format!("{crowd}{address}or_i32 s8, s3, s3\n{first}{MEET}or_i32 s3, s8, s8\n movei s9, 32\n{LOAD_LINES}")
}

/// Twelve lines of one set, three times.
fn evictions() -> String {
    let (crowd, address, step) = (crowd(2, 1), set("s3", 0x10_0000), set("s4", 0x2000));
    format!(
        "{crowd}{address}shli s4, s1, 20\n add_i32 s3, s3, s4\n movei s7, 3\nouter:\n or_i32 s8, s3, s3\n movei s9, 12\nagain:\n store32 s1, (s8)\n load32 s5, (s8)\n add_i32 s6, s5, s5\n{step}add_i32 s8, s8, s4\n subi s9, s9, 1\n bnez s9, again\n subi s7, s7, 1\n bnez s7, outer\n"
    )
}

/// Random loads and stores of sixteen lines of each core, all in one set of the caches. With `both`,
/// two cores do this, else only the first.
fn one_set(seed: (u32, u32), count: u32, stores: u32, both: bool) -> String {
    let (crowd, address, (multiplier, summand)) = (crowd(2, 1), set("s3", 0x20_0000), seed);
    let others = if both { "" } else { "bnez s1, fin\n" };
    format!(
        "{crowd}{address}moveil s8, {multiplier}\n mull_i32 s8, s8, s1\n addi s8, s8, {summand}\n movei s9, {count}\n{MEET}{others}again:\n moveil s10, 25173\n mull_i32 s8, s8, s10\n moveil s10, 13849\n add_i32 s8, s8, s10\n shri s11, s8, 9\n andi s12, s11, 15\n shli s12, s12, 13\n add_i32 s13, s3, s12\n shli s14, s1, 20\n add_i32 s13, s13, s14\n shri s15, s8, 17\n andi s15, s15, 15\n subi s15, s15, {stores}\n shri s15, s15, 31\n beqz s15, ld\n store32 s9, (s13)\n load32 s17, (s13)\n add_i32 s18, s17, s17\n jmp nx\nld:\n load32 s17, (s13)\n add_i32 s18, s17, s17\nnx:\n subi s9, s9, 1\n bnez s9, again\nfin:\n"
    )
}

/// One line for each core, and an access to it.
fn own_line(access: &str) -> String {
    let (crowd, address) = (crowd(2, 1), set("s3", 0x2_0000));
    format!("{crowd}{address}shli s4, s1, 16\n add_i32 s3, s3, s4\n{MEET}{access}")
}

/// Three stores in a row of which none waits for its line, and a load of the first, twice.
fn stores_in_a_row() -> String {
    let (crowd, address) = (crowd(2, 1), set("s3", 0x2_0000));
    let timed = |code: &str, register: u32| format!("{code}read_cr s7, s55\n sub_i32 s{register}, s7, s4\n");
    let first = timed("store32 s1, (s3)\n", 10);
    let second = timed("store32 s1, 64(s3)\n", 11);
    let third = timed("store32 s1, 128(s3)\n", 12);
    let load = timed(LOAD, 13);
    format!(
        "{crowd}movei s9, 2\n{address}shli s4, s1, 16\n add_i32 s3, s3, s4\nagain:\n{MEET}read_cr s4, s55\n{first}{second}{third}{load}addi s3, s3, 192\n subi s9, s9, 1\n bnez s9, again\n"
    )
}

/// Random loads and stores.
struct Accesses {
    /// The multiplier and the summand of the seed of each thread.
    seed: (u32, u32),
    homes: u32,
    lines: u32,
    count: u32,
    /// The sixteenths of the accesses that store first.
    stores: u32,
    shared: bool,
}

impl Accesses {
    fn source(&self, cores: u32, threads: u32) -> String {
        let mut source = crowd(cores, threads) + &set("s3", 0x20_0000);
        let (multiplier, summand) = self.seed;
        source += "shli s4, s1, 3\n add_i32 s4, s4, s2\n";
        let _ = write!(
            source,
            "moveil s8, {multiplier}\n mull_i32 s8, s8, s4\n addi s8, s8, {summand}\n"
        );
        if !self.shared {
            source += "shli s5, s4, 12\n add_i32 s3, s3, s5\n";
        }
        let (count, lines) = (self.count, self.lines - 1);
        let _ = write!(
            source,
            "{MEET}movei s9, {count}\nagain:\n moveil s10, 25173\n mull_i32 s8, s8, s10\n moveil s10, 13849\n add_i32 s8, s8, s10\n shri s11, s8, 6\n andi s12, s11, {lines}\n shli s12, s12, 6\n add_i32 s13, s3, s12\n"
        );
        if self.homes > 1 {
            let homes = self.homes - 1;
            let _ = write!(
                source,
                "shri s14, s8, 13\n andi s14, s14, {homes}\n shli s14, s14, 28\n add_i32 s13, s13, s14\n"
            );
        }
        let stores = self.stores;
        let _ = write!(
            source,
            "shri s15, s8, 17\n andi s15, s15, 15\n subi s15, s15, {stores}\n shri s15, s15, 31\n beqz s15, ld\n"
        );
        // Each thread has a word of the line.
        source += "andi s16, s4, 15\n shli s16, s16, 2\n add_i32 s16, s16, s13\n store32 s9, (s16)\nld:\n load32 s17, (s13)\n add_i32 s18, s17, s17\n subi s9, s9, 1\n bnez s9, again\n";
        source
    }
}

/// A program, and its cycles on the hardware without a delay of memory.
pub(super) struct Program {
    pub name: &'static str,
    pub cores: u32,
    /// The threads of each core.
    pub threads: u32,
    pub code: String,
    cycles: u64,
}

impl Program {
    fn new(name: &'static str, (cores, threads): (u32, u32), code: impl Into<String>, cycles: u64) -> Self {
        Self {
            name,
            cores,
            threads,
            code: code.into(),
            cycles,
        }
    }
}

/// Lines that cores share or take from each other.
fn sharing() -> Vec<Program> {
    const ALL: Option<u32> = None;
    let [zero, one] = [Some(0), Some(1)];
    vec![
        Program::new(
            "load from the second level",
            (2, 1),
            in_turn(2, &[(zero, LOAD), (one, LOAD)], 0),
            1105,
        ),
        Program::new(
            "load of a modified line",
            (2, 1),
            in_turn(2, &[(zero, STORE), (one, LOAD)], 0),
            1144,
        ),
        Program::new(
            "store to a modified line",
            (2, 1),
            in_turn(2, &[(zero, STORE), (one, STORE)], 0),
            1095,
        ),
        Program::new("upgrade", (2, 1), in_turn(2, &[(zero, LOAD), (zero, STORE)], 0), 1073),
        Program::new(
            "upgrade of a shared line",
            (2, 1),
            in_turn(2, &[(ALL, LOAD), (zero, STORE)], 0),
            1152,
        ),
        Program::new(
            "upgrade of a line of eight",
            (8, 1),
            in_turn(8, &[(ALL, LOAD), (Some(7), STORE)], 0),
            1955,
        ),
        Program::new(
            "the same with home 5",
            (8, 1),
            in_turn(8, &[(ALL, LOAD), (Some(3), STORE)], 5),
            1852,
        ),
        Program::new(
            "dcache_inv",
            (2, 1),
            in_turn(2, &[(zero, STORE), (zero, " dcache_inv s3\n"), (one, LOAD)], 0),
            1249,
        ),
        Program::new(
            "flush",
            (2, 1),
            in_turn(2, &[(zero, STORE), (zero, " flush s3\n"), (one, LOAD)], 0),
            1328,
        ),
        Program::new("increments of two", (2, 1), increments(2), 1445),
        Program::new("increments of eight", (8, 1), increments(8), 4269),
    ]
}

/// Barriers, at sync masters of several tiles.
fn meetings() -> Vec<Program> {
    vec![
        Program::new("barriers of two", (2, 1), barriers(2, 1, 0), 521),
        Program::new("barriers of two times eight", (2, 8), barriers(2, 8, 0), 1043),
        Program::new("barriers of four", (4, 1), barriers(4, 1, 0), 680),
        Program::new("barriers of four times eight", (4, 8), barriers(4, 8, 0), 1493),
        Program::new("barriers of eight", (8, 1), barriers(8, 1, 0), 893),
        Program::new("barriers of eight times eight", (8, 8), barriers(8, 8, 0), 2460),
        Program::new("barriers of two in tile 1", (2, 1), barriers(2, 1, 1), 511),
        Program::new("barriers of four in tile 6", (4, 1), barriers(4, 1, 6), 658),
    ]
}

/// Many lines at once, from memory and from second levels.
fn throughput() -> Vec<Program> {
    let store = "store32 s1, (s3)\n";
    vec![
        Program::new("cold loads of two", (2, 1), cold(2, 1, LOAD, false), 1837),
        Program::new("cold stores of two", (2, 1), cold(2, 1, store, false), 1103),
        Program::new("cold loads of four times four", (4, 4), cold(4, 4, LOAD, false), 6165),
        Program::new("cold stores of four times four", (4, 4), cold(4, 4, store, false), 3070),
        Program::new("cold loads of eight", (8, 1), cold(8, 1, LOAD, false), 3276),
        Program::new("cold stores of eight", (8, 1), cold(8, 1, store, false), 1589),
        Program::new(
            "cold loads of eight times eight",
            (8, 8),
            cold(8, 8, LOAD, false),
            26348,
        ),
        Program::new(
            "cold stores of eight times eight",
            (8, 8),
            cold(8, 8, store, false),
            13556,
        ),
        Program::new(
            "cold loads from homes of their own",
            (8, 8),
            cold(8, 8, LOAD, true),
            24080,
        ),
        Program::new("one second level for four", (4, 1), second_level(4, 1), 5728),
        Program::new("one second level for eight", (8, 1), second_level(8, 1), 6265),
        Program::new("one second level for two times eight", (2, 8), second_level(2, 8), 5820),
        Program::new("evictions", (2, 1), evictions(), 4123),
        Program::new(
            "one set of the caches",
            (2, 1),
            one_set((277, 146), 60, 6, false),
            10042,
        ),
        Program::new("one set for two", (2, 1), one_set((77, 46), 40, 4, true), 7321),
    ]
}

/// Starts, code, and accesses for which no thread waits.
fn starts_and_ends() -> Vec<Program> {
    let store = "store32 s1, (s3)\n";
    let code = " addi s10, s10, 1\n".repeat(400);
    vec![
        Program::new("start", (8, 1), "", 105),
        Program::new("start of all threads", (8, 8), "", 143),
        Program::new("code of eight", (8, 1), code.as_str(), 2907),
        Program::new("code of two times eight", (2, 8), code, 4727),
        Program::new("load before the end", (2, 1), own_line("load32 s5, (s3)\n"), 98),
        Program::new("store before the end", (2, 1), own_line(store), 98),
        Program::new("stores in a row", (2, 1), stores_in_a_row(), 642),
    ]
}

/// Lines of each thread, in 1 KiB of its own: eight lines that it has stored to, and then, behind a
/// barrier, some code `times` times.
fn own_lines((cores, threads): (u32, u32), times: u32, code: &str) -> String {
    let (crowd, address) = (crowd(cores, threads), set("s3", 0x10_0000));
    format!(
        "{crowd}{address}shli s4, s1, 16\n add_i32 s3, s3, s4\n shli s4, s2, 10\n add_i32 s3, s3, s4\n or_i32 s8, s3, s3\n movei s9, 8\nwarm:\n{STORE}addi s3, s3, 64\n subi s9, s9, 1\n bnez s9, warm\n or_i32 s3, s8, s8\n movei s9, {times}\n{MEET}again:\n{code}subi s9, s9, 1\n bnez s9, again\n"
    )
}

/// Requests for which no thread waits until there are too many: flushes, and writes to the console.
fn writes() -> Vec<Program> {
    let next = "addi s3, s3, 64\n";
    let flush = "flush s3\n";
    let with_loads = format!("{flush}load32 s5, 252(s3)\n add_i32 s6, s5, s5\n{next}");
    let missed = format!("{next}{STORE}{flush}");
    let console = set("s10", machine::CONSOLE_DATA) + "store32 s1, (s10)\n";
    let invalidated = format!("dcache_inv s3\n{next}");
    let many = |code: &str, times| own_lines((2, 8), times, code);
    vec![
        Program::new(
            "flushes of two times eight",
            (2, 8),
            many(&(flush.to_owned() + next), 8),
            2981,
        ),
        Program::new(
            "flushes of a line",
            (2, 8),
            many(&format!("store32 s9, (s8)\n{flush}"), 12),
            3657,
        ),
        Program::new(
            "flushes of four",
            (4, 1),
            own_lines((4, 1), 8, &(flush.to_owned() + next)),
            1035,
        ),
        Program::new("flushes and loads", (2, 8), many(&with_loads, 8), 3614),
        Program::new("flushes and misses", (4, 4), own_lines((4, 4), 8, &missed), 3141),
        Program::new(
            "dcache_inv of four times two",
            (4, 2),
            own_lines((4, 2), 8, &invalidated),
            1580,
        ),
        Program::new("console", (2, 8), many(&console, 12), 2326),
    ]
}

/// Random accesses.
fn random_accesses() -> Vec<Program> {
    vec![
        Program::new(
            "random accesses of two",
            (2, 1),
            Accesses {
                seed: (277, 146),
                homes: 1,
                lines: 16,
                count: 24,
                stores: 4,
                shared: true,
            }
            .source(2, 1),
            3633,
        ),
        Program::new(
            "random accesses of two times eight",
            (2, 8),
            Accesses {
                seed: (1959, 15),
                homes: 4,
                lines: 16,
                count: 24,
                stores: 4,
                shared: true,
            }
            .source(2, 8),
            6046,
        ),
        Program::new(
            "random accesses of four times two",
            (4, 2),
            Accesses {
                seed: (489, 152),
                homes: 8,
                lines: 16,
                count: 24,
                stores: 3,
                shared: true,
            }
            .source(4, 2),
            4959,
        ),
        Program::new(
            "random accesses of eight, with homes",
            (8, 1),
            Accesses {
                seed: (485, 78),
                homes: 16,
                lines: 8,
                count: 24,
                stores: 4,
                shared: true,
            }
            .source(8, 1),
            5043,
        ),
        Program::new(
            "random accesses of eight times two",
            (8, 2),
            Accesses {
                seed: (1277, 66),
                homes: 1,
                lines: 4,
                count: 24,
                stores: 1,
                shared: true,
            }
            .source(8, 2),
            3676,
        ),
        Program::new(
            "random accesses of eight times eight to their own lines",
            (8, 8),
            Accesses {
                seed: (1627, 147),
                homes: 8,
                lines: 32,
                count: 12,
                stores: 4,
                shared: false,
            }
            .source(8, 8),
            16022,
        ),
        Program::new(
            "random accesses of four times eight to their own lines",
            (4, 8),
            Accesses {
                seed: (665, 39),
                homes: 1,
                lines: 32,
                count: 16,
                stores: 8,
                shared: false,
            }
            .source(4, 8),
            8104,
        ),
        Program::new(
            "random accesses of two times four, loads only",
            (2, 4),
            Accesses {
                seed: (467, 95),
                homes: 2,
                lines: 64,
                count: 24,
                stores: 0,
                shared: true,
            }
            .source(2, 4),
            5091,
        ),
    ]
}

/// Returns all programs.
pub(super) fn programs() -> Vec<Program> {
    let groups = [
        sharing(),
        meetings(),
        throughput(),
        starts_and_ends(),
        writes(),
        random_accesses(),
    ];
    groups.into_iter().flatten().collect()
}

/// Programs with a slower memory: name, delay of memory, and cycles of the hardware.
const SLOW: [(&str, u32, u64); 17] = [
    ("load from the second level", 10, 1158),
    ("load from the second level", 40, 1346),
    ("cold loads of four times four", 10, 6192),
    ("cold loads of four times four", 40, 12054),
    ("cold stores of four times four", 10, 3803),
    ("cold stores of four times four", 40, 11004),
    ("random accesses of two times eight", 10, 6083),
    ("random accesses of two times eight", 40, 6946),
    ("random accesses of four times two", 10, 5083),
    ("random accesses of four times two", 40, 6657),
    ("cold loads of eight", 10, 3273),
    ("cold loads of eight", 40, 6646),
    ("increments of eight", 10, 4298),
    ("increments of eight", 40, 4771),
    ("evictions", 10, 4444),
    ("one set of the caches", 40, 11525),
    ("one set for two", 40, 9243),
];

/// Programs on the mesh of 2 by 2 tiles: name, delay of memory, and cycles of the hardware.
const SMALL: [(&str, u32, u64); 18] = [
    ("load from the second level", 0, 1036),
    ("load from the second level", 30, 1203),
    ("increments of two", 0, 1427),
    ("barriers of two times eight", 0, 1025),
    ("cold loads of two", 0, 1565),
    ("cold loads of two", 30, 2091),
    ("one second level for two times eight", 0, 5314),
    ("code of two times eight", 0, 4323),
    ("evictions", 0, 3631),
    ("evictions", 30, 4914),
    ("one set of the caches", 0, 9487),
    ("one set of the caches", 30, 10587),
    ("one set for two", 10, 7369),
    ("one set for two", 30, 8031),
    ("flushes of two times eight", 0, 2954),
    ("flushes of a line", 0, 3630),
    ("flushes and loads", 0, 3580),
    ("console", 0, 2299),
];

/// Programs in which cores fill the network with flushes. The model has no buffers in routers.
const CONGESTED: [&str; 3] = ["flushes of two times eight", "flushes of a line", "flushes and misses"];

#[test]
fn programs_take_the_cycles_of_the_hardware() {
    let programs = programs();
    let named = |name| {
        let found = programs.iter().find(|program| program.name == name);
        found.expect("a program has this name")
    };
    let shipped = Topology::default();
    let small = Topology::new(2, 2).expect("a mesh");
    let fast = programs.iter().map(|program| (program, shipped, 0, program.cycles));
    let slow = SLOW.map(|(name, delay, cycles)| (named(name), shipped, delay, cycles));
    let small = SMALL.map(|(name, delay, cycles)| (named(name), small, delay, cycles));
    let mut errors = Vec::new();
    let mut table = String::new();
    for (program, mesh, memory_delay, expected) in fast.chain(slow).chain(small) {
        let system = System {
            cores: program.cores as usize,
            running: program.cores as usize,
            threads: program.threads,
            memory_delay,
            mesh,
            ..System::alone()
        };
        let (name, code) = (program.name, &program.code);
        let source = format!("{PROLOGUE}{code}{END}");
        let (report, ..) = run_program(&source, system, |_| false);
        let cycles = report.cycles;
        let error = cycles as f64 / expected as f64 - 1.0;
        let _ = writeln!(
            table,
            "{mesh}: {name}, memory delay {memory_delay}: {cycles} cycles, hardware {expected}, {:+.1} %",
            100.0 * error
        );
        if CONGESTED.contains(&program.name) {
            assert!(error.abs() < 0.13, "{name}: {cycles} cycles, hardware {expected}");
        } else {
            errors.push(error.abs());
        }
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().copied().fold(0.0, f64::max);
    println!("{table}mean {mean:.4}, worst {worst:.4}");
    assert!(mean < 0.01 && worst < 0.05, "mean {mean:.4}, worst {worst:.4}\n{table}");
}
