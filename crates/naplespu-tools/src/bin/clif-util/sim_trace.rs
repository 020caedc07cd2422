//! The operands of `sim`: the image, and the trace file of `--trace`, `--trace=kanata FILE` and
//! `--trace=chrome FILE`.
//!
//! The file name of a trace follows its option like a value, so it is the operand after the option.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};
use std::path::PathBuf;

/// The kind of trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// No trace.
    #[default]
    None,
    /// A line for each instruction on standard output.
    Text,
    /// A log for the Konata viewer.
    Kanata(PathBuf),
    /// JSON for Perfetto.
    Chrome(PathBuf),
}

/// The operands.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The image.
    pub image: PathBuf,
    /// The trace.
    pub trace: Trace,
}

const OPERANDS: &str = "IMAGE";
const TRACE: &str = "trace";

impl clap::Args for Files {
    fn augment_args(cmd: Command) -> Command {
        cmd.arg(
            Arg::new(OPERANDS)
                .value_name("IMAGE")
                .required(true)
                .action(ArgAction::Append)
                .value_parser(clap::value_parser!(PathBuf))
                .help("The image; `-` is standard input"),
        )
        .arg(
            Arg::new(TRACE)
                .long(TRACE)
                .value_name("FORMAT> <FILE")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("text")
                .value_parser(["text", "kanata", "chrome"])
                .help("Print every instruction with its effects; with --timing, write a trace for Konata or Perfetto to FILE"),
        )
    }

    fn augment_args_for_update(cmd: Command) -> Command {
        Self::augment_args(cmd)
    }
}

impl clap::FromArgMatches for Files {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let operands: Vec<PathBuf> = matches
            .get_many::<PathBuf>(OPERANDS)
            .map(|operands| operands.cloned().collect())
            .unwrap_or_default();
        let places: Vec<usize> = matches.indices_of(OPERANDS).map(Iterator::collect).unwrap_or_default();
        let format = matches.get_one::<String>(TRACE).map(String::as_str);
        let mut operands: Vec<(usize, PathBuf)> = places.into_iter().zip(operands).collect();
        let trace = match format {
            None => Trace::None,
            Some("kanata" | "chrome") => {
                let option = matches.index_of(TRACE).unwrap_or_default();
                let Some(at) = operands.iter().position(|(place, _)| *place > option) else {
                    let message = "the name of the trace file must follow `--trace=kanata` or `--trace=chrome`\n";
                    return Err(Error::raw(ErrorKind::MissingRequiredArgument, message));
                };
                let (_, file) = operands.remove(at);
                if format == Some("kanata") {
                    Trace::Kanata(file)
                } else {
                    Trace::Chrome(file)
                }
            }
            Some(_) => Trace::Text,
        };
        match <[_; 1]>::try_from(operands) {
            Ok([(_, image)]) => Ok(Self { image, trace }),
            Err(operands) if operands.is_empty() => {
                let message = "the image is missing: one operand is the trace file\n";
                Err(Error::raw(ErrorKind::MissingRequiredArgument, message))
            }
            Err(_) => Err(Error::raw(ErrorKind::TooManyValues, "there is more than one image\n")),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    fn parse(line: &str) -> Result<Files, Error> {
        let command = Files::augment_args(Command::new("sim"));
        Files::from_arg_matches(&command.try_get_matches_from(line.split(' '))?)
    }

    #[test]
    fn the_trace_file_follows_its_option() {
        for line in ["sim --trace=kanata out image", "sim image --trace=kanata out"] {
            let files = parse(line).unwrap();
            assert_eq!(files.image, PathBuf::from("image"));
            assert_eq!(files.trace, Trace::Kanata("out".into()));
        }
        assert_eq!(parse("sim --trace image").unwrap().trace, Trace::Text);
        assert_eq!(parse("sim image --trace").unwrap().trace, Trace::Text);
        assert_eq!(parse("sim image").unwrap().trace, Trace::None);
    }

    #[test]
    fn anything_else_is_wrong() {
        for line in [
            "sim",
            "sim image other",
            "sim image --trace=chrome",
            "sim --trace=chrome image",
            "sim --trace=pdf out image",
            "sim --trace=kanata out image other",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
