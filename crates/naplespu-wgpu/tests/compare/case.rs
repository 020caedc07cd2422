//! How a shader runs: lines of its first comment.
//!
//! | line | meaning |
//! |---|---|
//! | `dispatch X Y Z` | the numbers of work-groups |
//! | `override NAME VALUE` | the value of an override |
//! | `buffer N USAGE TYPE COUNT [FROM TO]` | random numbers for binding N, below `TO` |
//! | `buffer N USAGE words VALUE...` | numbers for binding N; those with a point are floats |
//! | `ulps N` | floats may be N units in the last place apart |
//! | `absolute X` | floats may also be X apart |
//!
//! `USAGE` is `uniform` or `storage`, `TYPE` is `u32`, `i32`, `f32`, or `zero` for zero bits that
//! are compared as integers. `zero-f32` is compared as floats.

/// The largest difference of floats.
#[derive(Debug, Default)]
pub struct Tolerance {
    pub ulps: u32,
    pub absolute: f32,
}

/// A buffer of group 0.
#[derive(Debug)]
pub struct Buffer {
    pub binding: u32,
    pub usage: wgpu::BufferUsages,
    pub words: Vec<u32>,
    is_float: bool,
}

/// A run of a shader.
#[derive(Debug, Default)]
pub struct Case {
    pub groups: [u32; 3],
    pub overrides: Vec<(String, f64)>,
    pub buffers: Vec<Buffer>,
    pub tolerance: Tolerance,
}

fn number<T: std::str::FromStr>(text: Option<&&str>) -> Result<T, String> {
    let text = text.ok_or("a number is missing")?;
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// Returns the bits of a number; one with a point is a float.
fn word(text: &str) -> Result<u32, String> {
    match text.contains('.') {
        true => Ok(number::<f32>(Some(&text))?.to_bits()),
        false => Ok(number::<i64>(Some(&text))? as u32),
    }
}

impl Buffer {
    fn parse(words: &[&str], random: &mut fastrand::Rng) -> Result<Self, String> {
        let usage = match words.get(1) {
            Some(&"uniform") => wgpu::BufferUsages::UNIFORM,
            Some(&"storage") => wgpu::BufferUsages::STORAGE,
            other => return Err(format!("no usage: {other:?}")),
        };
        let ty = *words.get(2).ok_or("a type is missing")?;
        let rest = &words[3..];
        let count = || number::<usize>(rest.first());
        let contents = match (ty, rest.len()) {
            ("words", _) => rest
                .iter()
                .map(|text| word(text))
                .collect::<Result<Vec<u32>, String>>()?,
            ("zero" | "zero-f32", 1) => vec![0; count()?],
            ("f32", 3) => {
                let (from, to): (f32, f32) = (number(rest.get(1))?, number(rest.get(2))?);
                let one = || (from + (to - from) * random.f32()).to_bits();
                std::iter::repeat_with(one).take(count()?).collect()
            }
            ("u32" | "i32", 1) => std::iter::repeat_with(|| random.u32(..)).take(count()?).collect(),
            ("u32" | "i32", 3) => {
                let range: (i64, i64) = (number(rest.get(1))?, number(rest.get(2))?);
                let one = || random.i64(range.0..range.1) as u32;
                std::iter::repeat_with(one).take(count()?).collect()
            }
            _ => return Err(format!("no contents: {}", words.join(" "))),
        };
        Ok(Self {
            binding: number(words.first())?,
            usage,
            words: contents,
            is_float: matches!(ty, "f32" | "zero-f32"),
        })
    }

    /// Compares the words of a buffer after the runs.
    pub fn compare(&self, found: &[u32], expected: &[u32], tolerance: &Tolerance) -> Result<(), String> {
        let binding = self.binding;
        for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
            if found == expected {
                continue;
            }
            let (a, b) = (f32::from_bits(found), f32::from_bits(expected));
            if !self.is_float {
                return Err(format!(
                    "binding {binding}, word {index}: {found:#x} on the NPU, {expected:#x} on Vulkan"
                ));
            }
            let ulps = ordered(found).abs_diff(ordered(expected));
            let is_close = ulps <= tolerance.ulps || (a - b).abs() <= tolerance.absolute;
            let is_equal = is_close || (a.is_nan() && b.is_nan());
            if !is_equal {
                return Err(format!(
                    "binding {binding}, word {index}: {a:?} on the NPU, {b:?} on Vulkan, {ulps} ulps"
                ));
            }
        }
        Ok(())
    }
}

/// Returns the number of a float in the order of all floats; both zeros are 0.
fn ordered(bits: u32) -> i32 {
    let magnitude = (bits & 0x7fff_ffff).cast_signed();
    if bits >> 31 == 0 { magnitude } else { -magnitude }
}

impl Case {
    /// Reads the first lines that start with `//`, or all lines of a text without such lines.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut case = Self {
            groups: [1; 3],
            ..Self::default()
        };
        let mut random = fastrand::Rng::with_seed(1);
        let comments = text.lines().take_while(|line| line.starts_with("//"));
        let lines: Vec<&str> = match text.starts_with("//") {
            true => comments.map(|line| line.trim_start_matches('/')).collect(),
            false => text.lines().collect(),
        };
        for line in lines {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.split_first() {
                Some((&"dispatch", rest)) => {
                    for (axis, count) in case.groups.iter_mut().enumerate() {
                        *count = number(rest.get(axis))?;
                    }
                }
                Some((&"override", rest)) => {
                    let name = rest.first().ok_or("a name is missing")?;
                    case.overrides.push(((*name).to_owned(), number(rest.get(1))?));
                }
                Some((&"buffer", rest)) => case.buffers.push(Buffer::parse(rest, &mut random)?),
                Some((&"ulps", rest)) => case.tolerance.ulps = number(rest.first())?,
                Some((&"absolute", rest)) => case.tolerance.absolute = number(rest.first())?,
                _ => {}
            }
        }
        Ok(case)
    }
}
