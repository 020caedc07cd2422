//! Implements `test verifier`: compares announced errors with found ones.

use cranelift_codegen::verifier::VerifierErrors;
use naplespu_reader::diagnostic::{Diagnostic, Source};
use naplespu_reader::parse::FunctionCase;

/// Compares the verifier's errors with the `; error: text` comments.
///
/// An announced error matches a found one at the same entity whose message contains the text. Each
/// found error must be announced. Returns the mismatches.
pub fn compare(source: &Source, case: &FunctionCase, found: &VerifierErrors) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let mut met = vec![false; found.0.len()];
    for comment in &case.comments {
        let text = comment.text.trim_start_matches([';', ' ', '\t']);
        let Some(announced) = text.strip_prefix("error:").map(str::trim) else {
            continue;
        };
        let mut any = false;
        for (error, met) in found.0.iter().zip(&mut met) {
            if error.location == comment.entity && error.message.contains(announced) {
                *met = true;
                any = true;
            }
        }
        if !any {
            wrong.push(Diagnostic::new(
                format!("the verifier did not find `{announced}`"),
                comment.offset..comment.offset + comment.text.len(),
                format!("announced for {}", comment.entity),
            ));
        }
    }
    let unannounced: Vec<_> = found
        .0
        .iter()
        .zip(met)
        .filter(|(_, met)| !met)
        .map(|(error, _)| error.clone())
        .collect();
    wrong.extend(case.verifier_diagnostics(source, &VerifierErrors(unannounced)));
    wrong
}
