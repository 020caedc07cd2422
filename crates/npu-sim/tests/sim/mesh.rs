//! Programs of several cores beside their cycles on the hardware.
use npu_link::{Placement, link};
use npu_mc::asm::{Options, assemble};
use npu_sim::{Config, Halt, Machine, NoSink, Timing, TimingConfig};

#[test]
fn folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mesh");
    let mut sum = 0.0;
    let mut n = 0.0;
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let source = std::fs::read_to_string(&path).unwrap();
        let head: Vec<&str> = source.lines().next().unwrap().split(' ').collect();
        let (cores, threads, cycles): (usize, u32, u64) = (
            head[2].parse().unwrap(),
            head[4].parse().unwrap(),
            head[6].parse().unwrap(),
        );
        let text = source.lines().skip(1).collect::<Vec<_>>().join("\n");
        let object = assemble(&text, &Options::default()).unwrap_or_else(|f| panic!("{f:#?}"));
        let image = link(
            &object,
            &Placement {
                base: 0x400,
                ..Placement::default()
            },
        )
        .expect("it links")
        .image;
        let mut machine = Machine::new(Config {
            cores,
            ..Config::default()
        });
        machine.load(&image).expect("room");
        for core in 0..cores {
            (0..8).for_each(|thread| machine.boot(8 * core + thread, 0x400));
            machine.enable(core, (1u32 << threads) - 1);
        }
        let mut timing = Timing::new(TimingConfig::default());
        let halt = machine.run_timed(&mut timing, 10_000_000, &mut NoSink);
        let model = timing.report().cycles;
        let ratio = model as f64 / cycles as f64;
        sum += (ratio - 1.0).abs();
        n += 1.0;
        println!(
            "{:18} hw {cycles:7} model {model:7} {ratio:.3} {halt} {:?}",
            path.file_stem().unwrap().to_string_lossy(),
            timing.report().network.map(|c| (
                c.memory_reads,
                c.memory_writes,
                c.invalidations,
                c.upgrades,
                c.forwarded
            ))
        );
        let _ = Halt::Ended;
    }
    println!("mean {:.4}", sum / n);
}
