//! Lists of threads as text.

/// Formats ascending numbers of threads, with a range for three or more in a row: `thread 3` or
/// `threads 0-2, 5`.
pub fn thread_list(numbers: &[usize]) -> String {
    let parts = numbers.chunk_by(|a, b| a + 1 == *b).map(|row| match row {
        [first, _, .., last] => format!("{first}-{last}"),
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    });
    let noun = if numbers.len() == 1 { "thread" } else { "threads" };
    format!("{noun} {}", parts.collect::<Vec<_>>().join(", "))
}
