//! Profiles of `run`, `sim` and `wasm`: counts of executed instructions by place and call stack, in
//! the formats of viewers.

use super::places::Places;
use clap::ValueEnum;
use npu_mc::machine::INSTRUCTION_SIZE;
use npu_mc::{Opcode, SReg};
use npu_sim::TraceEvent;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The maximum depth of a call stack. Deeper calls are attributed to the call at this depth.
const DEEPEST: usize = 256;

/// The maximum number of call-stack nodes.
const MOST_NODES: usize = 100_000;

/// The options for profiles.
#[derive(clap::Args)]
pub struct ProfileArgs {
    /// Write how often each place was executed, by call stack, to a file
    #[arg(long, value_name = "FILE", conflicts_with = "timing")]
    profile: Option<PathBuf>,

    /// Format of the profile; by default speedscope if the name of the file ends in `.json`, else
    /// folded
    #[arg(long, value_enum, value_name = "FORMAT", requires = "profile")]
    profile_format: Option<Format>,

    /// Kind of places in the profile
    #[arg(
        long,
        value_enum,
        value_name = "PLACE",
        default_value = "function",
        requires = "profile"
    )]
    profile_by: By,
}

impl ProfileArgs {
    /// Returns the requested file.
    pub fn path(&self) -> Option<&Path> {
        self.profile.as_deref()
    }

    /// Returns an empty profile.
    pub fn start(&self) -> Profile {
        Profile {
            by: self.profile_by,
            ..Profile::default()
        }
    }

    /// Returns the profile of the program with this name as text.
    pub fn text(&self, profile: &Profile, name: &str) -> String {
        let of_name = self.path().map_or(Format::Folded, Format::of);
        profile.write(self.profile_format.unwrap_or(of_name), name)
    }
}

/// Formats of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for each stack, for flame graphs
    Folded,
    /// JSON for speedscope
    Speedscope,
}

impl Format {
    /// Returns the format for the name of a file: JSON for speedscope, folded for all others.
    fn of(path: &Path) -> Self {
        match path.extension() {
            Some(end) if end == "json" => Self::Speedscope,
            _ => Self::Folded,
        }
    }
}

/// The kinds of places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A function
    #[default]
    Function,
    /// A line of the source
    Line,
    /// An instruction
    Instruction,
}

/// A place of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    name: String,
    line: Option<(String, u32)>,
}

/// A place with its call stack.
struct Node {
    /// The node of the caller; `None` for a thread.
    parent: Option<usize>,
    /// The number of the place; for a thread, its own number.
    frame: usize,
    count: u64,
}

/// A profile of a run.
#[derive(Default)]
pub struct Profile {
    by: By,
    frames: Vec<Frame>,
    numbers: HashMap<Frame, usize>,
    of_address: HashMap<u32, usize>,
    nodes: Vec<Node>,
    children: HashMap<(usize, usize), usize>,
    /// For each thread its node, and its active calls: return address and node of the call.
    threads: BTreeMap<usize, (usize, Vec<(u32, usize)>)>,
}

impl Profile {
    /// Returns the place of an instruction.
    fn frame<P: Places>(&mut self, pc: u32, places: &P) -> usize {
        if let Some(&number) = self.of_address.get(&pc) {
            return number;
        }
        let (name, distance) = places.name(pc).unwrap_or(("??", 0));
        let line = places.line(pc);
        // The folded format separates names by semicolons.
        let mut name = name.replace(';', ":");
        if self.by == By::Instruction {
            name += &format!("+{distance:#x}");
        }
        if let (By::Line | By::Instruction, Some((file, line))) = (self.by, &line) {
            name += &format!(" ({file}:{line})");
        }
        let line = line.filter(|_| self.by != By::Function);
        let frame = Frame { name, line };
        let next = self.frames.len();
        let number = *self.numbers.entry(frame.clone()).or_insert(next);
        if number == next {
            self.frames.push(frame);
        }
        self.of_address.insert(pc, number);
        number
    }

    /// Restarts all threads with empty call stacks.
    pub fn start_over(&mut self) {
        for (_, calls) in self.threads.values_mut() {
            calls.clear();
        }
    }

    /// Counts an instruction.
    pub fn count<P: Places>(&mut self, event: &TraceEvent<'_>, places: &P) {
        let frame = self.frame(event.pc, places);
        let nodes = &mut self.nodes;
        let (root, calls) = self.threads.entry(event.thread).or_insert_with(|| {
            nodes.push(Node {
                parent: None,
                frame: event.thread,
                count: 0,
            });
            (nodes.len() - 1, Vec::new())
        });
        let parent = calls.last().map_or(*root, |&(_, node)| node);
        let full = nodes.len() >= MOST_NODES || calls.len() >= DEEPEST;
        let node = match self.children.get(&(parent, frame)) {
            Some(&node) => node,
            None if full => parent,
            None => {
                nodes.push(Node {
                    parent: Some(parent),
                    frame,
                    count: 0,
                });
                self.children.insert((parent, frame), nodes.len() - 1);
                nodes.len() - 1
            }
        };
        nodes[node].count += 1;
        let after = event.pc.wrapping_add(INSTRUCTION_SIZE);
        let opcode = npu_mc::decode(event.word).map(|inst| inst.opcode);
        match opcode {
            Ok(Opcode::JMPSR_OFF | Opcode::JMPSR_REG) => calls.push((after, node)),
            // The hardware's own call by a register does not work; compiled code uses this
            // sequence.
            Ok(Opcode::JUMPREG) if event.state.scalar(SReg::RA) == after => calls.push((after, node)),
            Ok(Opcode::JRET) => {
                let to = event.state.pc();
                if let Some(depth) = calls.iter().rposition(|&(back, _)| back == to) {
                    calls.truncate(depth);
                }
            }
            _ => {}
        }
    }

    /// Returns the places of a node, outermost call first, and its thread.
    fn stack(&self, node: usize) -> (usize, Vec<usize>) {
        let mut list = Vec::new();
        let mut at = &self.nodes[node];
        while let Some(parent) = at.parent {
            list.push(at.frame);
            at = &self.nodes[parent];
        }
        list.reverse();
        (at.frame, list)
    }

    /// Returns the counts of all stacks with executed instructions, by thread.
    fn stacks(&self) -> BTreeMap<(usize, Vec<usize>), u64> {
        let used = (0..self.nodes.len()).filter(|&node| self.nodes[node].count > 0);
        used.map(|node| (self.stack(node), self.nodes[node].count)).collect()
    }

    /// Returns the profile in a format.
    fn write(&self, format: Format, name: &str) -> String {
        match format {
            Format::Folded => self.folded(),
            Format::Speedscope => self.speedscope(name),
        }
    }

    fn folded(&self) -> String {
        let several = self.threads.len() > 1;
        let lines = self.stacks().into_iter().map(|((thread, stack), count)| {
            let thread = several.then(|| format!("thread {thread}"));
            let names = stack.iter().map(|&frame| self.frames[frame].name.clone());
            let names: Vec<String> = thread.into_iter().chain(names).collect();
            format!("{} {count}\n", names.join(";"))
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines.concat()
    }

    fn speedscope(&self, name: &str) -> String {
        let frames = self.frames.iter().map(|frame| match &frame.line {
            Some((file, line)) => json!({ "name": frame.name, "file": file, "line": line }),
            None => json!({ "name": frame.name }),
        });
        let stacks = self.stacks();
        let profiles = self.threads.keys().map(|thread| {
            let own = stacks.iter().filter(|((of, _), _)| of == thread);
            let (samples, weights): (Vec<_>, Vec<u64>) = own.map(|((_, stack), &count)| (stack, count)).unzip();
            let total: u64 = weights.iter().sum();
            json!({
                "type": "sampled",
                "name": format!("thread {thread}"),
                "unit": "none",
                "startValue": 0,
                "endValue": total,
                "samples": samples,
                "weights": weights,
            })
        });
        let file = json!({
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": name,
            "exporter": concat!("clif-util ", env!("CARGO_PKG_VERSION")),
            "shared": { "frames": frames.collect::<Vec<_>>() },
            "profiles": profiles.collect::<Vec<_>>(),
        });
        format!("{file}\n")
    }
}
