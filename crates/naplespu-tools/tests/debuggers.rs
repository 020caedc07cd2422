//! Runs unmodified GDB and LLDB on `clif-util sim --gdb`: the sessions of docs/debugging.md.
//!
//! Debian has the debuggers in the packages `gdb-multiarch` and `lldb`. Without them the tests are
//! reported as ignored. The variables `GDB` and `LLDB` name other executables.

use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The time limit of a session. A session takes seconds unless it hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// The program of the sessions in docs/debugging.md.
const SOURCE: &str = "\
function %inner(i32) -> i32 {
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

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// A test: its name, the variable that names the debugger, the debugger's default name, and the
/// function to run.
type Test = (&'static str, &'static str, &'static str, fn(&str) -> Result<()>);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests: [Test; 4] = [
        ("gdb_session_of_the_documents", "GDB", "gdb-multiarch", gdb_session),
        ("gdb_without_a_program", "GDB", "gdb-multiarch", gdb_alone),
        ("gdb_ends_the_program", "GDB", "gdb-multiarch", gdb_kill),
        ("lldb_session_of_the_documents", "LLDB", "lldb", lldb_session),
    ];
    let trials = tests.map(|(name, variable, usual, test)| {
        let tool = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
        let version = Command::new(&tool).arg("--version").output();
        let missing = !version.is_ok_and(|output| output.status.success());
        let reason = if missing {
            format!("{tool} is not there")
        } else {
            String::new()
        };
        Trial::test(name, move || test(&tool).map_err(|e| Failed::from(e.to_string())))
            .with_ignored_flag(missing)
            .with_kind(reason)
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// A child process that is killed at the end of the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guard {
    /// Waits for the process up to the time limit and returns its exit status.
    fn end(&mut self) -> Result<i32> {
        let start = Instant::now();
        while start.elapsed() < LONGEST {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("it does not end".into())
    }
}

/// The program, and a simulator that waits for a debugger.
struct Session {
    folder: tempfile::TempDir,
    simulator: Guard,
    messages: BufReader<std::process::ChildStderr>,
    port: String,
}

impl Session {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("k.clif"), SOURCE)?;
        for line in [
            "compile --emit=obj -o k.o k.clif",
            "link k.o -o p.elf",
            "sim p.elf --gdb 0 --threads 2",
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
            command.args(line.split(' ')).current_dir(folder.path());
            if !line.starts_with("sim") {
                if !command.status()?.success() {
                    return Err(line.into());
                }
                continue;
            }
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let mut messages = BufReader::new(child.stderr.take().ok_or("no pipe")?);
            let simulator = Guard(child);
            let mut line = String::new();
            messages.read_line(&mut line)?;
            let (_, port) = line.trim_end().rsplit_once(':').ok_or("it does not say its port")?;
            let port = port.to_owned();
            return Ok(Self {
                folder,
                simulator,
                messages,
                port,
            });
        }
        Err("nothing was simulated".into())
    }

    /// Runs a debugger and returns its output.
    fn debug(&self, command: &mut Command) -> Result<String> {
        let path = self.folder.path().join("transcript");
        let file = std::fs::File::create(&path)?;
        let child = command
            .current_dir(self.folder.path())
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Guard(child).end()?;
        Ok(std::fs::read_to_string(path)?)
    }

    /// Returns the exit status and the output of the simulator.
    fn end(mut self) -> Result<(i32, String)> {
        let mut said = String::new();
        let status = self.simulator.end()?;
        self.messages.read_to_string(&mut said)?;
        Ok((status, said))
    }
}

/// Returns the session of the documents that starts with a line: commands, each with the lines
/// after it.
fn documented(prompt: &str) -> Result<Vec<(String, Vec<String>)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/debugging.md");
    let mut session: Vec<(String, Vec<String>)> = Vec::new();
    for line in std::fs::read_to_string(path)?
        .lines()
        .filter(|line| !line.trim().is_empty())
    {
        let line = line.strip_prefix("    ");
        match line.and_then(|line| line.strip_prefix(prompt)) {
            Some(command) => session.push((command.to_owned(), Vec::new())),
            // The session is one block of text.
            None => match (line, session.last_mut()) {
                (Some(line), Some((_, answers))) => answers.push(line.to_owned()),
                (None, Some(_)) => break,
                (_, None) => {}
            },
        }
    }
    if session.len() < 8 {
        return Err(format!("docs/debugging.md has no session with `{prompt}`").into());
    }
    Ok(session)
}

/// Checks that a transcript contains the commands and answers of the documents in this order. Other
/// versions may print more.
fn compare(session: &[(String, Vec<String>)], prompt: &str, transcript: &str) -> Result<()> {
    // White space differs between versions.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = transcript.lines().map(words);
    for (command, answers) in session {
        let echo = format!("{prompt}{command}");
        for wanted in std::iter::once(&echo).chain(answers).map(|line| words(line)) {
            if !rest.any(|line| line == wanted) {
                return Err(format!("`{wanted}` is not in its place:\n{transcript}").into());
            }
        }
    }
    Ok(())
}

/// Runs commands, each after a line that prints it. The documents' commands attach to port 1234,
/// which is replaced.
fn gdb(tool: &str, session: &Session, commands: &[String], files: &[&str]) -> Result<String> {
    let mut script = String::from("set pagination off\nset confirm off\nset width 0\nset style enabled off\n");
    for command in commands {
        let real = command.replace(":1234", &format!(":{}", session.port));
        writeln!(script, "echo (gdb) {command}\\n\n{real}")?;
    }
    std::fs::write(session.folder.path().join("commands.gdb"), script)?;
    let mut command = Command::new(tool);
    session.debug(command.args(["-q", "-nx", "-batch", "-x", "commands.gdb"]).args(files))
}

fn gdb_session(tool: &str) -> Result<()> {
    let wanted = documented("(gdb) ")?;
    let session = Session::new()?;
    let commands: Vec<String> = wanted.iter().map(|(command, _)| command.clone()).collect();
    let transcript = gdb(tool, &session, &commands, &["p.elf"])?;
    compare(&wanted, "(gdb) ", &transcript)?;
    let (status, said) = session.end()?;
    if (status, said.as_str()) != (0, "the debugger left\n") {
        return Err(format!("the simulator ended with status {status}: {said}").into());
    }
    Ok(())
}

/// A session without symbols, by addresses, to the end of the program.
fn gdb_alone(tool: &str) -> Result<()> {
    let session = Session::new()?;
    let commands = [
        "target remote :1234",
        "info registers pc",
        "set $s9 = 0x1234",
        "print/x $s9",
        "set $v7.i[15] = 5",
        "print $v7.i",
        "set {int}0x9000 = 77",
        "print {int}0x9000",
        "hbreak *0x404",
        "continue",
        "thread 2",
        "print $_thread",
        "delete",
        "continue",
    ]
    .map(str::to_owned);
    let transcript = gdb(tool, &session, &commands, &[])?;
    for wanted in [
        "pc             0x400               0x400",
        "$1 = 0x1234",
        "$2 = {0 <repeats 15 times>, 5}",
        "$3 = 77",
        "Breakpoint 1, 0x00000404 in ?? ()",
        "$4 = 2",
        "[Inferior 1 (process 1) exited normally]",
    ] {
        if !transcript.lines().any(|line| line.ends_with(wanted)) {
            return Err(format!("no `{wanted}`:\n{transcript}").into());
        }
    }
    let (status, said) = session.end()?;
    if (status, said.as_str()) != (0, "the program ended with status 0\n") {
        return Err(format!("the simulator ended with status {status}: {said}").into());
    }
    Ok(())
}

fn gdb_kill(tool: &str) -> Result<()> {
    let session = Session::new()?;
    let commands = ["target remote :1234", "kill"].map(str::to_owned);
    let transcript = gdb(tool, &session, &commands, &["p.elf"])?;
    let (status, said) = session.end()?;
    if (status, said.as_str()) != (0, "the debugger ended the program\n") {
        return Err(format!("the simulator ended with status {status}: {said}\n{transcript}").into());
    }
    Ok(())
}

fn lldb_session(tool: &str) -> Result<()> {
    let wanted = documented("(lldb) ")?;
    let session = Session::new()?;
    let mut script = String::new();
    for (command, _) in &wanted {
        writeln!(script, "{}", command.replace(":1234", &format!(":{}", session.port)))?;
    }
    std::fs::write(session.folder.path().join("commands.lldb"), script)?;
    let transcript = session.debug(Command::new(tool).args(["-x", "-b", "-s", "commands.lldb"]))?;
    // LLDB echoes the commands.
    let transcript = transcript.replace(&format!(":{}", session.port), ":1234");
    compare(&wanted, "(lldb) ", &transcript)?;
    let (status, said) = session.end()?;
    if (status, said.as_str()) != (0, "the debugger left\n") {
        return Err(format!("the simulator ended with status {status}: {said}").into());
    }
    Ok(())
}
