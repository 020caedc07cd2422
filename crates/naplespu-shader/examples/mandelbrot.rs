//! Writes a picture of the Mandelbrot set, computed by `examples/shaders/mandelbrot.wgsl` on eight
//! threads.
//!
//! ```text
//! cargo run --release -p naplespu-shader --example mandelbrot -- mandelbrot.png
//! ```

use cranelift_codegen::settings::{self, Configurable};
use cranelift_naplespu::isa;
use naplespu_jit::Device;
use naplespu_shader::{Bound, Dispatch, Module, Options, Runner};
use std::error::Error;
use std::io::BufWriter;

const SHADER: &str = include_str!("../../../examples/shaders/mandelbrot.wgsl");

/// The size of the picture in pixels.
const SIZE: (u32, u32) = (384, 256);

/// The iterations at which the shader stops.
const LIMIT: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: mandelbrot FILE.png")?;
    let (width, height) = SIZE;

    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    let isa = isa::lookup_by_name("naplespu")?.finish(settings::Flags::new(flags))?;
    let mut device = Device::new(isa)?;
    let module = Module::from_wgsl(SHADER).map_err(|error| error.render("mandelbrot.wgsl", Some(SHADER)))?;
    let runner = Runner::new(&mut device, module.compile(None, &Options::default())?)?;

    // The centers of pixels. None is 0, of which the machine's float unit adds two inexactly
    // (docs/floats.md).
    let pixel = 3.0 / width as f32;
    let corner = [-2.25 + pixel / 2.0, pixel * (0.5 - height as f32 / 2.0)];
    let view = [corner[0].to_bits(), corner[1].to_bits(), pixel.to_bits(), width];
    let iterations = device.allocate(4 * width * height)?;
    let parameters = device.allocate(16)?;
    device.copy_words_in(parameters, 0, &view)?;
    let bound = [Bound::whole(0, 0, iterations), Bound::whole(0, 1, parameters)];
    let dispatch = Dispatch::new([(width * height).div_ceil(64), 1, 1], 8);
    runner.dispatch(&mut device, &dispatch, &bound)?;

    let counts = device.copy_words_out(iterations, 0, (width * height) as usize)?;
    // Black inside; outside the brighter, the closer.
    let shade = |count: u32| {
        if count >= LIMIT {
            0
        } else {
            (255.0 * (count as f32 / LIMIT as f32).sqrt()) as u8
        }
    };
    let pixels: Vec<u8> = counts.into_iter().map(shade).collect();
    let mut encoder = png::Encoder::new(BufWriter::new(std::fs::File::create(path)?), width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(())
}
