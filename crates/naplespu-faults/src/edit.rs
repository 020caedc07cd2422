//! Inserts faults into texts.

use crate::Result;
use crate::list::{Fault, Kind};
use std::ops::Range;

/// The environment variable with the number of the active fault.
pub const VARIABLE: &str = "NAPLESPU_FAULT";

/// The module that is added to each library with faults.
pub const SWITCH: &str = r#"
#[doc(hidden)]
pub mod fault_switch {
    static ON: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        std::env::var("NAPLESPU_FAULT").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
    });

    #[inline]
    pub fn on(number: u32) -> bool {
        *ON == number
    }
}
"#;

/// Returns the range of the text that the fault replaces.
///
/// # Errors
///
/// Returns [`Error::Fault`](crate::Error::Fault) unless the text occurs exactly once.
pub fn place(fault: &Fault, text: &str) -> Result<Range<usize>> {
    let once = |what: &str, part: &str, from: usize| {
        let mut found = text[from..].match_indices(part);
        match (found.next(), found.next()) {
            (Some((at, _)), None) => Ok(from + at),
            (None, _) => Err(fault.error(format!("{} does not contain {what}", fault.file))),
            (Some(_), Some(_)) => Err(fault.error(format!("{} contains {what} more than once", fault.file))),
        }
    };
    let at = match &fault.after {
        None => once("`from`", &fault.from, 0)?,
        Some(after) => {
            let start = once("`after`", after, 0)? + after.len();
            let found = text[start..].find(&fault.from);
            start + found.ok_or_else(|| fault.error(format!("{} does not contain `from` after `after`", fault.file)))?
        }
    };
    if fault.from.is_empty() || fault.from == fault.to {
        return Err(fault.error("`from` is empty or the same as `to`"));
    }
    Ok(at..at + fault.from.len())
}

/// Returns the text of one file with these numbered faults, each selected by a switch.
///
/// # Errors
///
/// Returns an error if the text of a fault does not occur exactly once, or if two faults overlap at
/// different positions.
pub fn apply(text: &str, faults: &[(u32, &Fault)]) -> Result<String> {
    let mut places = Vec::new();
    for &(number, fault) in faults {
        let place = place(fault, text)?;
        places.push((place.start, place.end, number, fault));
    }
    places.sort_by_key(|&(start, end, number, _)| (start, end, number));
    let mut out = String::new();
    let mut done = 0;
    for group in places.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (start, end, _, first) = group[0];
        if start < done {
            return Err(first.error("the text overlaps with the text of another fault"));
        }
        out.push_str(&text[done..start]);
        let members: Vec<(u32, &Fault)> = group.iter().map(|&(_, _, number, fault)| (number, fault)).collect();
        out.push_str(&switched(&text[start..end], &members)?);
        done = end;
    }
    out.push_str(&text[done..]);
    Ok(out)
}

/// Returns the replacement of one range with all of its faults.
fn switched(original: &str, faults: &[(u32, &Fault)]) -> Result<String> {
    let kind = faults[0].1.kind;
    if let Some((_, other)) = faults.iter().find(|(_, fault)| fault.kind != kind) {
        return Err(other.error("another fault for the same text is of a different kind"));
    }
    if kind == Kind::Isle {
        let rules = faults
            .iter()
            .map(|(number, fault)| fault.to.replace("FAULT", &number.to_string()));
        let rules: Vec<String> = rules.collect();
        return Ok(format!("{original}\n{}\n", rules.join("\n")));
    }
    let mut out = String::new();
    for (number, fault) in faults {
        out.push_str(&format!(
            "if crate::fault_switch::on({number}) {{ {} }} else ",
            fault.to
        ));
    }
    out.push_str(&format!("{{ {original} }}"));
    match kind {
        Kind::Statements => Ok(out),
        _ => Ok(format!("({out})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn fault(name: &str, from: &str, to: &str) -> Fault {
        Fault {
            name: name.to_owned(),
            file: "src/file.rs".to_owned(),
            after: None,
            from: from.to_owned(),
            to: to.to_owned(),
            kind: Kind::Expression,
            tests: Vec::new(),
            equivalent: None,
            topic: String::new(),
        }
    }

    fn message(result: Result<String>) -> String {
        match result {
            Err(Error::Fault { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn faults_stand_behind_switches() {
        let (a, b) = (fault("a", "x < y", "x <= y"), fault("b", "x < y", "true"));
        let mut c = fault("c", "go();", "");
        c.kind = Kind::Statements;
        let text = "fn f() { if x < y { go(); } }";
        let switched = apply(text, &[(3, &c), (1, &a), (2, &b)]).unwrap();
        let condition =
            "(if crate::fault_switch::on(1) { x <= y } else if crate::fault_switch::on(2) { true } else { x < y })";
        let statement = "if crate::fault_switch::on(3) {  } else { go(); }";
        assert_eq!(switched, format!("fn f() {{ if {condition} {{ {statement} }} }}"));
    }

    #[test]
    fn a_place_is_the_only_one() {
        let text = "fn f() { x + 1 }\nfn g() { x + 1 }";
        let mut one = fault("a", "x + 1", "x");
        assert_eq!(
            message(apply(text, &[(1, &one)])),
            "src/file.rs contains `from` more than once"
        );
        one.after = Some("fn g".to_owned());
        assert_eq!(place(&one, text).unwrap(), 26..31);
        one.after = Some("fn h".to_owned());
        assert_eq!(
            message(apply(text, &[(1, &one)])),
            "src/file.rs does not contain `after`"
        );
        let other = fault("b", "x + 2", "x");
        assert_eq!(
            message(apply(text, &[(1, &other)])),
            "src/file.rs does not contain `from`"
        );
        let (a, b) = (fault("a", "f() { x", "f() { y"), fault("b", "x + 1 }\nfn", "y }\nfn"));
        assert_eq!(
            message(apply(text, &[(1, &a), (2, &b)])),
            "the text overlaps with the text of another fault"
        );
    }

    #[test]
    fn rules_of_a_fault_follow_the_rules() {
        let mut one = fault("a", "(rule (f x) x)", "(rule 1 (f x) (if (fault FAULT)) y)");
        one.kind = Kind::Isle;
        let switched = apply("(rule (f x) x)", &[(7, &one)]).unwrap();
        assert_eq!(switched, "(rule (f x) x)\n(rule 1 (f x) (if (fault 7)) y)\n");
    }
}
