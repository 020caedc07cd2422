//! Compares `sim --strict` with the hardware description of several cores, on the programs of
//! `crates/npu-sim/tests/sim/faults`: a program with a fault does not end on the hardware, and the
//! others do. `sim --strict` passes those and no program with a fault.
//!
//! It also compares the kernels of `examples/kernels_cores` on several cores: equal results, and equal
//! cycles within 2 %.
//!
//! The variable `NPUMESH` names a program that runs the hardware description of 4 by 4 tiles.

use crate::{Outcome, clif_util, memory_of, root, run};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum number of cycles on the hardware; the longest program that ends has half of them.
const CYCLES: &str = "25000";

/// The number of cycles without an instruction that count as a hang.
const HANG: &str = "2000";

/// A kernel and the addresses of its buffers in the memory of tile 0.
const KERNELS: [(&str, [u32; 4]); 2] = [
    ("convolution", [0x10_0000, RESULT, WEIGHTS, 0x10_4000]),
    ("histogram", [0x10_0000, WEIGHTS, RESULT, 0x10_4000]),
];
const RESULT: u32 = 0x10_8000;
const WEIGHTS: u32 = 0x10_2000;

/// The offset of the cycles of each core from the result, and the bytes to compare.
const CYCLES_AT: u32 = 0x1000;
const BYTES: u32 = CYCLES_AT + 64 * 8;

/// The largest difference of cycles in percent.
const WORST: f64 = 2.0;

/// Returns the value of a line `// NAME: VALUE`.
fn value<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("// {name}: ");
    source.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// Checks each program.
pub fn on_the_hardware(simulator: &Path) -> Outcome<()> {
    let folder = root().join("crates/npu-sim/tests/sim/faults");
    let image = Path::new(env!("CARGO_TARGET_TMPDIR")).join("several_cores.hex");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let source = std::fs::read_to_string(&path)?;
        let cores = value(&source, "cores").ok_or("no number of cores")?;
        let fault = value(&source, "fault").ok_or("no fault")?;
        let ends = fault == "none" || value(&source, "hardware") == Some("ends");
        let assembled = clif_util().arg("asm").arg(&path).arg("-o").arg(&image).status()?;
        let mut hardware = Command::new(simulator);
        hardware
            .arg("--image")
            .arg(&image)
            .args(["--hex", "--cores", cores, "--threads", "1"]);
        hardware.args(["--max-cycles", CYCLES, "--hang", HANG]);
        let ended = hardware.output()?.status.success();
        let mut strict = clif_util();
        strict
            .args(["sim", "--strict", "--timing", "--threads", "1", "--cores", cores])
            .arg(&image);
        let output = strict.output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let passes = output.status.success();
        let as_expected = if fault == "none" {
            passes
        } else {
            !passes && text.contains(fault)
        };
        if !assembled.success() || ended != ends || !as_expected {
            wrong.push(format!("{}: ended {ended}, passes {passes}\n{text}", path.display()));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n").into())
}

/// Links a kernel with a driver that runs it on every thread; returns the image. Stacks are in the
/// memory of the tile of each core.
fn image(kernel: &str, buffers: [u32; 4], cores: u32) -> Outcome<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels_cores");
    std::fs::create_dir_all(&folder)?;
    let file = |ending: &str| folder.join(format!("{kernel}{cores}.{ending}"));
    let set = |register: &str, value: u32| {
        format!(
            "moveih {register}, {}\nmoveil {register}, {}\n",
            value >> 16,
            value & 0xffff
        )
    };
    let mut driver = ".text\n.globl _start\n_start: movei rm, 65535\n".to_owned();
    driver += "movei s50, 0\nread_cr s52, s50\nmovei s50, 2\nread_cr s53, s50\nshli s54, s52, 28\n";
    driver += &set("sp", 0x40_0000);
    driver += "add_i32 sp, sp, s54\nmovei s56, 4352\nmull_i32 s55, s53, s56\nadd_i32 sp, sp, s55\n";
    for (number, buffer) in buffers.into_iter().enumerate() {
        driver += &set(&format!("s{number}"), buffer);
    }
    write!(
        driver,
        "move_i32 s4, s52\nmove_i32 s5, s53\nmovei s6, {}\njmpsr kernel\n",
        cores.ilog2()
    )?;
    // Thread 0 of each core stores the cycles to a line of its own.
    driver += &set("s50", RESULT + CYCLES_AT);
    driver += "shli s55, s52, 6\nadd_i32 s50, s50, s55\nbnez s53, 1f\nstore32 s0, (s50)\nflush s50\n";
    driver += "1: movei s50, 11\nmovei s51, 2\nwrite_cr s51, s50\n2: jmp 2b\n";
    std::fs::write(file("s"), driver)?;
    let source = root().join(format!("examples/kernels_cores/{kernel}.clif"));
    let options = ["compile", "--emit=obj", "--set", "opt_level=speed", "-o"];
    run(clif_util().args(options).arg(file("k.o")).arg(source))?;
    run(clif_util()
        .args(["asm", "--emit=obj", "-o"])
        .arg(file("o"))
        .arg(file("s")))?;
    let options = ["link", "--nostdlib", "--entry", "_start", "-o"];
    run(clif_util()
        .args(options)
        .arg(file("elf"))
        .arg(file("o"))
        .arg(file("k.o")))?;
    run(clif_util()
        .args(["objcopy", "-O", "hex"])
        .arg(file("elf"))
        .arg(file("hex")))?;
    let mut text = std::fs::read_to_string(file("hex"))?;
    for tile in (0..cores).filter(|_| kernel == "convolution") {
        write!(text, "@{:08x}\n1 2 1 2 4 2 1 2 1\n", tile << 28 | WEIGHTS)?;
    }
    std::fs::write(file("hex"), text)?;
    Ok(file("hex"))
}

/// Compares the kernels on the hardware and on the model.
pub fn kernels(simulator: &Path) -> Outcome<()> {
    let dump = format!("{RESULT:#x}:{BYTES}");
    for (kernel, buffers) in KERNELS {
        for cores in [2, 4, 8] {
            let image = image(kernel, buffers, cores)?;
            let count = cores.to_string();
            let common = ["--cores", &count, "--dump", &dump, "--threads"];
            let mut hardware = Command::new(simulator);
            hardware
                .arg("--image")
                .arg(&image)
                .arg("--hex")
                .args(common)
                .arg("0xff");
            let hardware = memory_of(&run(&mut hardware)?)?;
            let model = run(clif_util().args(["sim", "--timing"]).args(common).arg("8").arg(&image))?;
            let model = memory_of(&model)?;
            let result = (CYCLES_AT / 4) as usize;
            let most = |memory: &[u32]| f64::from(memory.iter().skip(result).copied().max().unwrap_or_default());
            let (measured, modeled) = (most(&hardware), most(&model));
            println!("{kernel} on {cores} cores: {measured} cycles, in the model {modeled}");
            let equal = hardware.iter().take(result).eq(model.iter().take(result));
            if !equal || measured == 0.0 || (modeled / measured - 1.0).abs() > WORST / 100.0 {
                return Err(format!("{kernel} on {cores} cores: {measured} {modeled}, equal {equal}").into());
            }
        }
    }
    Ok(())
}
