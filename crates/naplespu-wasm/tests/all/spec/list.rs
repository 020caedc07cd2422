//! The files of the specification suite that run, and the exclusions with their reasons.

/// Proposals whose files run in addition to those of the current specification.
pub const FILES: &[&str] = &[
    "bulk-memory",
    "exceptions",
    "extended-const",
    "function-references",
    "multi-memory",
    "multi-value",
    "mutable-global",
    "nontrapping-float-to-int-conversions",
    "reference-types",
    "relaxed-simd",
    "sign-extension-ops",
    "simd",
    "tail-call",
    "threads",
    "wide-arithmetic",
];

/// The expected refusals of modules: a part of the message, and the reason. Directives about a
/// refused module are skipped.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "a group of recursive types",
        "types are compared by structure, so they cannot refer to themselves",
    ),
    ("a recursive type", "as above"),
    ("a reference to Any", "there is no collector"),
    ("a type of the garbage-collection proposal", "there is no collector"),
];

/// The reason for skipping tests that only older versions and proposals have.
pub const OLD_RULES: &str = "allowed by later versions";
