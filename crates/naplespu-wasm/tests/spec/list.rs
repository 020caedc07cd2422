//! What of the suite is run, and what is left out, with the reasons.

/// Proposals whose files are run beside those of the current specification.
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

/// Refusals of modules, by a part of their text, and why they are. What a script does with a refused module is skipped.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "a group of recursive types",
        "types are compared by structure, so they cannot refer to themselves",
    ),
    ("a recursive type", "as above"),
    ("a reference to Any", "there is no collector"),
    ("a type of the garbage-collection proposal", "there is no collector"),
];

/// Why something is skipped that only files of older versions and proposals may have.
pub const OLD_RULES: &str = "allowed by later versions";
