//! The shaders of `examples/shaders`, compared with plain computations.

use crate::run::{Case, run, wgsl};
use naplespu_shader::Options;

macro_rules! shader {
    ($name:literal) => {
        include_str!(concat!("../../../../examples/shaders/", $name, ".wgsl"))
    };
}

/// The lanes of the tests.
const LANES: [u32; 3] = [1, 16, 32];

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|float| float.to_bits()).collect()
}

fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|&word| f32::from_bits(word)).collect()
}

/// Returns the words of a linear congruential generator.
fn random(count: usize) -> Vec<u32> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Returns numbers from 0 to 1.
fn random_floats(count: usize) -> Vec<f32> {
    random(count)
        .into_iter()
        .map(|word| word as f32 / (1 << 24) as f32)
        .collect()
}

/// Runs a shader for each number of lanes. A work-group has `items` work-items. Returns the
/// buffers after each run.
fn runs(text: &str, items: u32, groups: [u32; 3], buffers: &[Vec<u32>]) -> Result<Vec<Vec<Vec<u32>>>, String> {
    runs_with(text, items, groups, buffers, false)
}

/// Like [`runs`], with this value of `strict_float`.
fn runs_with(
    text: &str,
    items: u32,
    groups: [u32; 3],
    buffers: &[Vec<u32>],
    strict_float: bool,
) -> Result<Vec<Vec<Vec<u32>>>, String> {
    let module = wgsl(text)?;
    let mut results = Vec::new();
    for lanes in LANES {
        let mut case = Case::new(&module, buffers.to_vec());
        case.options = Options {
            lanes,
            ..Options::default()
        };
        // One work-item at a time cannot execute larger work-groups that wait for each other.
        if lanes == 1 && items > 8 {
            continue;
        }
        case.groups = groups;
        case.strict_float = strict_float;
        results.push(run(case).map_err(|error| format!("with {lanes} lanes: {error}"))?);
    }
    Ok(results)
}

fn close(found: &[u32], expected: &[f32], tolerance: f32) -> Result<(), String> {
    for (index, (found, expected)) in floats(found).iter().zip(expected).enumerate() {
        if (found - expected).abs() > tolerance {
            return Err(format!("element {index}: expected {expected}, found {found}"));
        }
    }
    Ok(())
}

#[test]
fn saxpy() -> Result<(), String> {
    let (x, y) = (random_floats(200), random_floats(200));
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5 * x + y).collect();
    for buffers in runs(shader!("saxpy"), 1, [4, 1, 1], &[bits(&x), bits(&y), bits(&[2.5])])? {
        close(&buffers[1], &expected, 1e-5)?;
    }
    Ok(())
}

#[test]
fn reduction() -> Result<(), String> {
    let numbers = random(500);
    let sum = |block: &[u32]| block.iter().fold(0u32, |sum, number| sum.wrapping_add(*number));
    let expected: Vec<u32> = numbers.chunks(128).map(sum).collect();
    for buffers in runs(shader!("reduction"), 128, [4, 1, 1], &[numbers.clone(), vec![0; 4]])? {
        assert_eq!(buffers[1], expected);
    }
    Ok(())
}

#[test]
fn scan() -> Result<(), String> {
    let numbers = random(256);
    let mut expected = numbers.clone();
    for block in expected.chunks_mut(128) {
        for index in 1..block.len() {
            block[index] = block[index].wrapping_add(block[index - 1]);
        }
    }
    for buffers in runs(shader!("scan"), 128, [2, 1, 1], &[numbers])? {
        assert_eq!(buffers[0], expected);
    }
    Ok(())
}

#[test]
fn histogram() -> Result<(), String> {
    let words = random(150);
    let mut expected = vec![0; 256];
    for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
        expected[usize::from(byte)] += 1;
    }
    for buffers in runs(shader!("histogram"), 64, [3, 1, 1], &[words, vec![0; 256]])? {
        assert_eq!(buffers[1], expected);
    }
    Ok(())
}

#[test]
fn bitonic_sort() -> Result<(), String> {
    let numbers: Vec<u32> = random(128)
        .into_iter()
        .map(|word| (word as i32 - (1 << 23)) as u32)
        .collect();
    let mut expected: Vec<i32> = numbers.iter().map(|&word| word as i32).collect();
    expected.sort_unstable();
    for buffers in runs(shader!("bitonic"), 128, [1, 1, 1], &[numbers])? {
        let found: Vec<i32> = buffers[0].iter().map(|&word| word as i32).collect();
        assert_eq!(found, expected);
    }
    Ok(())
}

#[test]
fn matmul() -> Result<(), String> {
    let size = 32;
    let (a, b) = (random_floats(size * size), random_floats(size * size));
    let mut expected = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size {
            expected[row * size + column] = (0..size).map(|k| a[row * size + k] * b[k * size + column]).sum();
        }
    }
    let buffers = [bits(&a), bits(&b), vec![0; size * size]];
    for buffers in runs(shader!("matmul"), 128, [2, 4, 1], &buffers)? {
        close(&buffers[2], &expected, 1e-4)?;
    }
    Ok(())
}

#[test]
fn convolution() -> Result<(), String> {
    let (width, height) = (37i32, 10i32);
    let image = random_floats((width * height) as usize);
    let at = |x: i32, y: i32| image[(y.clamp(0, height - 1) * width + x.clamp(0, width - 1)) as usize];
    let mut expected = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let mut sum = 0.0;
            for (index, weight) in [1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0].into_iter().enumerate() {
                sum += weight * at(x + index as i32 % 3 - 1, y + index as i32 / 3 - 1);
            }
            expected.push(sum / 16.0);
        }
    }
    let size = vec![width as u32, height as u32];
    let buffers = [bits(&image), vec![0; image.len()], size];
    for buffers in runs(shader!("convolution"), 1, [3, 3, 1], &buffers)? {
        close(&buffers[1], &expected, 1e-5)?;
    }
    Ok(())
}

#[test]
fn mandelbrot() -> Result<(), String> {
    let (width, height, pixel) = (24, 16, 0.125f32);
    let corner = [-2.0f32, -1.0];
    let mut expected = Vec::new();
    for index in 0..width * height {
        let c = [
            corner[0] + (index % width) as f32 * pixel,
            corner[1] + (index / width) as f32 * pixel,
        ];
        let (mut z, mut count) = ([0.0f32; 2], 0);
        while count < 100 && z[0] * z[0] + z[1] * z[1] <= 4.0 {
            z = [z[0] * z[0] - z[1] * z[1] + c[0], 2.0 * z[0] * z[1] + c[1]];
            count += 1;
        }
        expected.push(count);
    }
    let view = vec![corner[0].to_bits(), corner[1].to_bits(), pixel.to_bits(), width];
    let count = (width * height) as usize;
    // Near the edge of the set, rounding decides, so this is exact with IEEE floats only.
    for buffers in runs_with(shader!("mandelbrot"), 1, [6, 1, 1], &[vec![0; count], view], true)? {
        assert_eq!(buffers[0], expected);
    }
    Ok(())
}

#[test]
fn transpose() -> Result<(), String> {
    let (columns, rows) = (40usize, 20usize);
    let matrix = random(columns * rows);
    let mut expected = vec![0; columns * rows];
    for row in 0..rows {
        for column in 0..columns {
            expected[column * rows + row] = matrix[row * columns + column];
        }
    }
    let size = vec![columns as u32, rows as u32];
    let buffers = [matrix.clone(), vec![0; matrix.len()], size];
    for buffers in runs(shader!("transpose"), 64, [3, 2, 1], &buffers)? {
        assert_eq!(buffers[1], expected);
    }
    Ok(())
}

#[test]
fn life() -> Result<(), String> {
    let size = 32usize;
    let cells: Vec<u32> = random(size * size).into_iter().map(|word| word & 1).collect();
    let mut expected = Vec::new();
    for y in 0..size {
        for x in 0..size {
            let around = (0..9).filter(|k| *k != 4);
            let neighbors: u32 = around
                .map(|k| cells[(y + size + k / 3 - 1) % size * size + (x + size + k % 3 - 1) % size])
                .sum();
            expected.push(match neighbors {
                2 => cells[y * size + x],
                3 => 1,
                _ => 0,
            });
        }
    }
    for buffers in runs(shader!("life"), 1, [2, 8, 1], &[cells, vec![0; size * size]])? {
        assert_eq!(buffers[1], expected);
    }
    Ok(())
}

#[test]
fn nbody() -> Result<(), String> {
    const COUNT: usize = 100;
    // Position, mass, velocity, padding.
    let numbers = random_floats(COUNT * 8);
    let body = |index: usize| &numbers[index * 8..index * 8 + 8];
    let mut expected = numbers.clone();
    for index in 0..COUNT {
        let mut sum = [0.0; 3];
        for other in (0..COUNT).map(body) {
            let way: Vec<f32> = (0..3).map(|axis| other[axis] - body(index)[axis]).collect();
            let square: f32 = way.iter().map(|one| one * one).sum();
            let inverse = (square + 0.05).sqrt().recip();
            for (sum, way) in sum.iter_mut().zip(way) {
                *sum += way * other[3] * inverse.powi(3);
            }
        }
        for axis in 0..3 {
            expected[index * 8 + 4 + axis] += sum[axis] * 0.01;
            expected[index * 8 + axis] += expected[index * 8 + 4 + axis] * 0.01;
        }
        expected[index * 8 + 7] = 0.0;
    }
    for buffers in runs(shader!("nbody"), 64, [2, 1, 1], &[bits(&numbers), vec![0; COUNT * 8]])? {
        close(&buffers[1], &expected, 1e-4)?;
    }
    Ok(())
}

#[test]
fn fft() -> Result<(), String> {
    let signal = random_floats(128);
    let mut expected = Vec::new();
    for k in 0..64 {
        let (mut real, mut imaginary) = (0.0f64, 0.0f64);
        for (n, pair) in signal.chunks_exact(2).enumerate() {
            let angle = -std::f64::consts::TAU * (k * n) as f64 / 64.0;
            let (sin, cos) = angle.sin_cos();
            let (a, b) = (f64::from(pair[0]), f64::from(pair[1]));
            real += a * cos - b * sin;
            imaginary += a * sin + b * cos;
        }
        expected.extend([real as f32, imaginary as f32]);
    }
    for buffers in runs(shader!("fft"), 64, [1, 1, 1], &[bits(&signal)])? {
        close(&buffers[0], &expected, 1e-4)?;
    }
    Ok(())
}
