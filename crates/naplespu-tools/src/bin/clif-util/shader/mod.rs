//! `clif-util shader`: runs compute shaders in the simulator. The translator is a feature of the
//! build, because it needs more time than the rest.

#[cfg(feature = "shader")]
mod execute;

use crate::dispatch::{Contents, GroupArgs, Number};
use crate::{Outcome, input};
use clap::ValueEnum;
use std::path::PathBuf;

/// Compile a compute shader (WGSL, GLSL or SPIR-V), and run work-groups of it in the simulator
///
/// The name of the file tells the language: `.wgsl`, `.glsl` or `.comp`, `.spv`. A buffer is named
/// by its number in group 0, or by group and number: `2` or `0:2`. The default of `opt_level` is
/// `speed`.
#[derive(clap::Args)]
pub struct Args {
    /// A shader; `-` is WGSL from standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The entry point, if there are several
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,

    /// List the compute entry points with their buffers instead of running one
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    groups: GroupArgs,

    /// The initial contents of a buffer: a file, `zeros:BYTES`, or a list such as `f32:1,2,3`,
    /// `u32:1,2` or `i32:-1`
    #[arg(long, value_name = "BUFFER=CONTENTS", value_parser = parse_bind)]
    bind: Vec<(Place, Contents)>,

    /// Write a buffer to a file after the run
    #[arg(long, value_name = "BUFFER=FILE", value_parser = parse_out)]
    out: Vec<(Place, PathBuf)>,

    /// Print a buffer as numbers after the run
    #[arg(long, value_name = "BUFFER=f32|u32|i32", value_parser = parse_print)]
    print: Vec<(Place, Number)>,

    /// The value of an override, by name or number
    #[arg(long = "override", value_name = "NAME=VALUE", value_parser = parse_override)]
    overrides: Vec<(String, f64)>,

    /// Threads of each core that execute work-groups
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    threads: u8,

    /// Cores that execute work-groups
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: u16,

    /// Run with the timing model, and report cycles and their causes
    #[arg(long)]
    timing: bool,

    /// Maximum number of instructions, all threads together; one thousand million by default
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,

    /// Write the compiled shader in this form instead of running it
    #[arg(long, value_enum, value_name = "FORM")]
    emit: Option<Form>,

    #[command(flatten)]
    settings: input::SettingArgs,

    /// Print the number of executed instructions to standard error
    #[arg(short, long)]
    verbose: bool,
}

/// The output forms of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// CLIF of the function of one work-item
    Clif,
    /// CLIF of the function that executes work-groups on lanes, and of the functions that it calls
    Spmd,
}

/// The group and the number of a buffer.
type Place = (u32, u32);

/// Splits `BUFFER=REST`.
fn parse_place(text: &str) -> Result<(Place, &str), String> {
    let (place, rest) = text.split_once('=').ok_or("it has the form BUFFER=...")?;
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("'{text}' is not a number of a buffer"))
    };
    let place = match place.split_once(':') {
        Some((group, binding)) => (number(group)?, number(binding)?),
        None => (0, number(place)?),
    };
    Ok((place, rest))
}

fn parse_bind(text: &str) -> Result<(Place, Contents), String> {
    let (place, contents) = parse_place(text)?;
    Ok((place, Contents::parse(contents)?))
}

fn parse_out(text: &str) -> Result<(Place, PathBuf), String> {
    let (place, file) = parse_place(text)?;
    Ok((place, file.into()))
}

fn parse_print(text: &str) -> Result<(Place, Number), String> {
    let (place, kind) = parse_place(text)?;
    let kind = Number::from_str(kind, false).map_err(|_| format!("'{kind}' is not f32, u32 or i32"))?;
    Ok((place, kind))
}

fn parse_override(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("it has the form NAME=VALUE")?;
    let value = match value {
        "true" => 1.0,
        "false" => 0.0,
        value => value.parse().map_err(|_| format!("'{value}' is not a number"))?,
    };
    Ok((name.to_owned(), value))
}

/// Runs the subcommand.
#[cfg(feature = "shader")]
pub fn run(args: &Args) -> Outcome {
    execute::run(args)
}

/// Reports that this build has no shaders.
#[cfg(not(feature = "shader"))]
pub fn run(_args: &Args) -> Outcome {
    Err(crate::Stop::Usage(
        "this build has no shaders; build with `cargo build --release --bin clif-util --features naplespu-tools/shader`"
            .to_owned(),
    ))
}
