//! No input makes the parser and evaluator panic, overflow the stack or loop forever.

use std::fmt::Write;
use std::path::PathBuf;

use tablegen::fuzz::exercise;
use tablegen::{Options, parse_str};

fn options() -> Options {
    Options {
        // Enough for every test program; an infinite one exceeds it soon.
        step_limit: 3_000_000,
        ..Options::default()
    }
}

fn must_fail(text: &str) {
    assert!(exercise(text).has_errors(), "accepted: {:.200}", text);
}

#[test]
fn deep_nesting() {
    for (open, close) in [
        ("(a ", ")"),
        ("[", "]"),
        ("{", "}"),
        ("!add(1, ", ")"),
        ("!if(1, 2, ", ")"),
        ("A<", ">"),
        ("x{", "}"),
        ("x[", "]"),
    ] {
        let text = format!("def a {{ int x = {}1{}; }}", open.repeat(50_000), close.repeat(50_000));
        must_fail(&text);
        must_fail(&format!("def a {{ int x = {}", open.repeat(50_000)));
    }
    must_fail(&format!("def a {{ {} x; }}", "list<".repeat(50_000)));
    must_fail(&"foreach i = [1] in ".repeat(50_000));
    must_fail(&"if 1 then {".repeat(50_000));
    must_fail(&"if 1 then { } else ".repeat(50_000));
    must_fail(&"let x = 1 in ".repeat(50_000));
    must_fail(&"/*".repeat(50_000));
    must_fail(&"#ifdef A\n".repeat(50_000));
    must_fail(&format!("def a {{ int x = y{}; }}", ".f".repeat(50_000)));
    must_fail(&format!(
        "class C {{ C c = ?; }} def a : C {{ int x = c{}; }}",
        ".c".repeat(50_000)
    ));
}

#[test]
fn endless_recursion() {
    must_fail("class B<int n> { B b = B<!add(n, 1)>; } def z : B<0>;");
    must_fail("class B<int n> { int v = B<!add(n, 1)>.v; } def z : B<0>;");
    must_fail(
        "class A<int n> { int v = B<!add(n, 1)>.v; int v2 = 0; } class B<int n> { int v = 0; } class C : A<1>; class D<int n> { D d = D<n>; int x = D<!mul(n, 2)>.x; } def z : D<1>;",
    );
    must_fail("def a { int x = ?; int y = x; let x = y; }");
    must_fail("class A<string s> { A a = A<s # s>; } def z : A<\"ab\">;");
    must_fail("class A<list<int> l> { A a = A<l # l>; } def z : A<[1, 2]>;");
}

#[test]
fn chains_of_fields() {
    let mut text = String::from("class C { int f0 = ?;");
    for at in 1..20_000 {
        let _ = write!(text, " int f{at} = !add(f{}, 1);", at - 1);
    }
    text.push_str(" } def a : C;");
    must_fail(&text);
}

#[test]
fn exponential_growth() {
    let mut text = String::from("defvar s0 = \"0123456789\";\ndefvar l0 = [1, 2, 3];\n");
    for at in 1..80 {
        let before = at - 1;
        let _ = writeln!(text, "defvar s{at} = s{before} # !strconcat(s{before}, s{before});");
        let _ = writeln!(text, "defvar l{at} = !listconcat(l{before}, l{before});");
    }
    must_fail(&text);
    must_fail(
        "foreach a = !range(1000000) in foreach b = !range(1000000) in foreach c = !range(1000000) in def x#a#b#c;",
    );
    must_fail(
        "def a { int x = !foldl(0, !range(1000000), a1, b1, !foldl(a1, !range(1000000), a2, b2, !add(a2, b2))); }",
    );
}

#[test]
fn huge_numbers() {
    must_fail("class A { bits<4000000000> b; }");
    must_fail("class A { bits<-1> b; }");
    must_fail("def a { int x = !shl(1, 1000000000); }");
    must_fail("def a { int x = !div(-9223372036854775808, -1); }");
    must_fail("def a { int x = 123456789012345678901234567890; }");
    must_fail("foreach i = 0-9223372036854775807 in def a#i;");
    must_fail("foreach i = -9223372036854775808...9223372036854775807 in def a#i;");
    must_fail("def a { int y = 5; bits<3> x = y{99999999999-0}; }");
    must_fail("def a { string s = !substr(\"abc\", -1); }");
    must_fail("def a { string s = !substr(\"abc\", 1, -1); }");
    exercise("def a { list<int> l = !range(-9223372036854775808, 9223372036854775807, 9223372036854775807); }");
    exercise("def a { bits<65536> b = -1; bits<0> c; }");
}

#[test]
fn includes_in_circles() {
    let mut options = options();
    options
        .files
        .insert(PathBuf::from("a.td"), "include \"b.td\"\ndef a;".into());
    options.files.insert(PathBuf::from("b.td"), "include \"a.td\"\n".into());
    options.files.insert(
        PathBuf::from("twice.td"),
        "include \"twice.td\" include \"twice.td\"\n".into(),
    );
    for text in [
        "include \"a.td\"",
        "include \"twice.td\"",
        "include \"none.td\"",
        "include",
    ] {
        let parsed = parse_str("main.td", text, &options);
        assert!(parsed.has_errors());
        let _ = parsed.render_diagnostics();
    }
}

/// A small generator of pseudo-random numbers. Its only purpose is that failures are repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

/// Returns the programs to mutate: those of the test folders.
fn seeds() -> Vec<String> {
    let mut seeds = Vec::new();
    for folder in ["pass", "fail"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        for entry in std::fs::read_dir(folder).expect("the folder is part of the project") {
            let path = entry.expect("the folder can be read").path();
            if path.extension().is_some_and(|extension| extension == "td") {
                seeds.push(std::fs::read_to_string(path).expect("programs are text"));
            }
        }
    }
    seeds.sort();
    seeds
}

fn on_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[test]
fn mutations() {
    const SNIPPETS: &[&str] = &[
        "{",
        "}",
        "<",
        ">",
        "(",
        ")",
        "[",
        "]",
        ";",
        ":",
        "=",
        "#",
        "?",
        ",",
        "...",
        "-",
        "!",
        "!cast<",
        "!foldl(",
        "def ",
        "defm ",
        "class ",
        "let ",
        "in ",
        "foreach ",
        "multiclass ",
        "NAME",
        "$x",
        "\"",
        "[{",
        "}]",
        "/*",
        "0b1",
        "0x",
        "-9223372036854775808",
        "9223372036854775807",
        "bits<",
        "list<",
        "é",
        "\0",
        "if ",
        "then ",
    ];
    let seeds = seeds();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for iteration in 0..300 {
        let mut text = seeds[random.next(seeds.len())].clone();
        for _ in 0..=random.next(6) {
            let at = on_boundary(&text, random.next(text.len() + 1));
            let end = on_boundary(&text, (at + random.next(20)).min(text.len()));
            match random.next(5) {
                0 => text.replace_range(at..end, ""),
                1 => text.insert_str(at, SNIPPETS[random.next(SNIPPETS.len())]),
                2 => {
                    let piece = text[at..end].to_owned();
                    let to = on_boundary(&text, random.next(text.len() + 1));
                    text.insert_str(to, &piece);
                }
                3 => text.replace_range(at..end, SNIPPETS[random.next(SNIPPETS.len())]),
                _ => text.truncate(at.max(text.len() / 2)),
            }
            let end = on_boundary(&text, text.len());
            text.truncate(end);
        }
        let result = std::panic::catch_unwind(|| exercise(&text));
        match result {
            Ok(parsed) => {
                let broken = parsed
                    .diagnostics
                    .iter()
                    .any(|one| one.message.contains("could not be run"));
                assert!(!broken, "iteration {iteration} panics:\n{text}");
            }
            Err(_) => panic!("iteration {iteration} panics:\n{text}"),
        }
    }
}

#[test]
fn grammar() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut accepted = 0;
    for iteration in 0..400 {
        let bytes: Vec<u8> = (0..random.next(300)).map(|_| random.next(256) as u8).collect();
        let text = tablegen::fuzz::program(&bytes);
        let result = std::panic::catch_unwind(|| exercise(&text));
        let Ok(parsed) = result else {
            panic!("iteration {iteration} panics:\n{text}");
        };
        let messages = parsed.render_diagnostics();
        assert!(
            !messages.contains("could not be run"),
            "iteration {iteration} panics:\n{text}"
        );
        accepted += usize::from(!parsed.has_errors());
    }
    // The test is of little use if the evaluator rejects most generated programs.
    assert!(accepted > 40, "only {accepted} of 400 programs are accepted");
}
