//! Tests `clif-util sim --waits-json`: the file contains the stall accounts and the waits, whose
//! sums are the accounts. And `--misses-json`: all its tables have the same sum.

use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Simulates a program; returns the output and the file of the last option.
fn run(options: &[&str], program: &str) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.json");
    let output = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(["sim", "--timing"])
        .args(options)
        .arg(&file)
        .arg(format!("tests/cli/inputs/{program}"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let file = std::fs::read_to_string(&file).unwrap();
    (text, serde_json::from_str(&file).unwrap())
}

#[test]
fn the_file_adds_up_to_the_summary() {
    let (text, file) = run(&["--threads", "3", "--waits-json"], "counted.hex");

    // Cycles by cause, from the summary, the accounts and the waits.
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("cycles waited: "))
        .unwrap();
    let summary: BTreeMap<String, u64> = line
        .split(", ")
        .map(|part| part.rsplit_once(' ').unwrap())
        .map(|(cause, cycles)| (cause.to_owned(), cycles.parse().unwrap()))
        .collect();
    let mut accounts: BTreeMap<String, u64> = BTreeMap::new();
    let threads = file["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 3);
    for (cause, cycles) in threads.iter().flat_map(|thread| thread["cycles"].as_object().unwrap()) {
        *accounts.entry(cause.clone()).or_default() += cycles.as_u64().unwrap();
    }
    let mut waits: BTreeMap<String, u64> = BTreeMap::new();
    for wait in file["waits"].as_array().unwrap() {
        let cause = wait["cause"].as_str().unwrap().to_owned();
        *waits.entry(cause).or_default() += wait["cycles"].as_u64().unwrap();
        assert!(wait["at"]["instruction"].is_string() && wait["awaited"]["kind"].is_string());
    }
    assert_eq!(summary, accounts);
    assert_eq!(summary, waits);
    // The second float sum of each iteration waits for the first one.
    let float =
        file["waits"].as_array().unwrap().iter().find(|wait| {
            wait["cause"] == "float result" && wait["at"]["pc"] == 20 && wait["awaited"]["at"]["pc"] == 12
        });
    assert_eq!(float.unwrap()["awaited"]["register"], "s4");
}

#[test]
fn the_tables_of_misses_have_the_same_sum() {
    let (_, file) = run(&["--cores", "2", "--misses-json"], "threads.hex");
    let sum = |table: &str, member: &str| -> u64 {
        let rows = file[table].as_array().unwrap();
        rows.iter().map(|row| row[member].as_u64().unwrap()).sum()
    };
    assert!(sum("lines", "misses") > 0 && sum("links", "flits") > 0);
    for member in ["misses", "memory", "code", "hops", "cycles"] {
        for table in ["homes", "cores", "hops", "variables"] {
            assert_eq!(sum(table, member), sum("lines", member), "{table}, {member}");
        }
    }
    assert_eq!(file["lines"][0]["instructions"], true);
    assert_eq!(file["lines"][0]["readers"].as_array().unwrap().len(), 2);
}
