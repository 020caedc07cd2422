//! Tests that hits equal the results of compilation, damaged entries are replaced, and processes
//! share a directory.

#[cfg(feature = "shared")]
#[path = "cache/shared.rs"]
mod shared;
#[path = "cache/sources.rs"]
mod sources;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, SourceLoc};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_naplespu::settings::Setting;
use cranelift_naplespu::{CodeCache, CompiledCode, Isa, Pass, Stage, isa};
use naplespu_cache::{Cache, DiskStore, MemoryStore, fuzz};
use naplespu_object::NpuObjectModule;
use naplespu_reader::ClifFile;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The environment variable of child processes with the shared directory.
const FOLDER: &str = "NAPLESPU_CACHE_TEST_FOLDER";

const SMALL: &str = "function %small(i32, i32) -> i32 system_v {\n    fn0 = %callee(i32) -> i32 system_v\n\
    block0(v0: i32, v1: i32):\n    v2 = udiv v0, v1\n    v3 = call fn0(v2)\n    return v3\n}\n";

fn target(level: &str) -> Arc<Isa> {
    let mut flags = settings::builder();
    flags.set("opt_level", level).unwrap();
    isa::lookup_by_name("naplespu")
        .unwrap()
        .finish(Flags::new(flags))
        .unwrap()
}

fn file(name: &str, text: &[u8]) -> ClifFile {
    let file = ClifFile::parse(name, text);
    assert!(file.faults.is_empty(), "{}", file.source.render(&file.faults));
    file
}

fn small() -> Function {
    file("small.clif", SMALL.as_bytes()).functions[0].func.clone()
}

/// Returns the files of some directories of tests, in order.
fn files(folders: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "clif"))
        .collect();
    files.sort();
    files
}

fn functions(folders: &[&str]) -> Vec<Function> {
    let cases = files(folders).into_iter().flat_map(|path| {
        let name = path.display().to_string();
        let cases = file(&name, &std::fs::read(&path).unwrap()).functions;
        cases.into_iter().map(|case| case.with_debug_info())
    });
    cases.collect()
}

/// Returns the code, or the error.
fn compile(isa: &Isa, func: &Function) -> Result<CompiledCode, String> {
    let mut ctx = Context::for_function(func.clone());
    isa.compile(&mut ctx, &mut ControlPlane::default())
        .map_err(|error| error.to_string())
}

/// Prints every field.
fn text(code: Result<CompiledCode, String>) -> String {
    code.map_or_else(
        |error| error,
        |mut code| {
            let labels: BTreeMap<u32, _> = std::mem::take(&mut code.value_labels_ranges)
                .into_iter()
                .map(|(label, ranges)| (label.as_u32(), ranges))
                .collect();
            format!("{code:?} {labels:?}")
        },
    )
}

#[test]
fn hits_are_what_compiling_gives() {
    let functions = functions(&[
        "corpus",
        "codegen",
        "exceptions",
        "memory",
        "stack",
        "traps",
        "vector",
        "vectorize",
    ]);
    let plain = target("speed");
    let cache = Arc::new(Cache::new(MemoryStore::default()));
    let cached = plain.with_cache(cache.clone());
    let mut compiled = 0;
    for func in &functions {
        let fresh = compile(&plain, func);
        compiled += u64::from(fresh.is_ok());
        let fresh = text(fresh);
        assert_eq!(text(compile(&cached, func)), fresh, "miss: {}", func.name);
        assert_eq!(text(compile(&cached, func)), fresh, "hit: {}", func.name);
    }
    let counts = cache.counts();
    assert!(compiled > 500, "{compiled}");
    // Some functions differ only in their names.
    assert!(counts.hits >= compiled, "{counts:?} of {compiled}");
    assert_eq!(counts.damaged, 0);
}

#[test]
fn objects_are_the_same() {
    let cached = Arc::new(target("speed").with_cache(Arc::new(Cache::new(MemoryStore::default()))));
    for path in files(&["corpus"]).into_iter().take(20) {
        let name = path.display().to_string();
        let file = file(&name, &std::fs::read(&path).unwrap());
        let object = |isa: &Arc<Isa>| {
            let mut module = NpuObjectModule::new(isa.clone()).unwrap();
            module.set_source_file("file.clif");
            for case in &file.functions {
                module.define_clif_at(&case.with_debug_info(), Some(1)).unwrap();
            }
            module.emit().unwrap()
        };
        let fresh = object(&target("speed"));
        assert_eq!(object(&cached), fresh, "miss: {name}");
        assert_eq!(object(&cached), fresh, "hit: {name}");
    }
}

#[test]
fn keys_differ_where_code_may() {
    let cache = Cache::new(MemoryStore::default());
    let plain = target("speed");
    let mut keys = HashSet::from([cache.key(&plain, &small())]);
    let mut is_new = |isa: &Isa, func: &Function, what: &str| assert!(keys.insert(cache.key(isa, func)), "{what}");
    is_new(&target("none"), &small(), "opt_level");
    is_new(&plain.for_runtime(), &small(), "runtime");
    is_new(&plain.without_pass(Pass::Sched), &small(), "pass");
    for setting in Setting::ALL {
        let name = setting.info().name;
        // Every setting accepts one of these, besides its default.
        let value = ["true", "false", "1", "single_thread"]
            .into_iter()
            .find(|value| {
                let mut builder = isa::lookup_by_name("naplespu").unwrap();
                *value != setting.info().default && builder.set(name, value).is_ok()
            })
            .unwrap_or_else(|| panic!("a value for `{name}` is missing here"));
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").unwrap();
        let mut builder = isa::lookup_by_name("naplespu").unwrap();
        builder.set(name, value).unwrap();
        is_new(&builder.finish(Flags::new(flags)).unwrap(), &small(), name);
    }
    // Routines of the runtime with the passes of a program: only the mode differs.
    let runtime = plain.for_runtime();
    let passes = |isa: &Isa, other: &Isa| {
        let dropped = Pass::ALL.iter().filter(|pass| isa.runs(**pass) && !other.runs(**pass));
        dropped.fold(isa.clone(), |isa, pass| isa.without_pass(*pass))
    };
    let both = [passes(&plain, &runtime), passes(&runtime, &plain)];
    assert!(Pass::ALL.iter().all(|pass| both[0].runs(*pass) == both[1].runs(*pass)));
    is_new(&both[0], &small(), "passes of both modes");
    is_new(&both[1], &small(), "mode");
    for pass in Pass::ALL
        .iter()
        .filter(|pass| **pass != Pass::Sched && plain.runs(**pass))
    {
        is_new(&plain.without_pass(*pass), &small(), pass.name());
    }
    for setting in settings::builder().iter() {
        // A numeric setting has no list of values.
        let values = setting
            .values
            .map_or_else(|| vec!["true", "false", "1", "16"], <[_]>::to_vec);
        let mut others = HashSet::new();
        for value in values {
            let mut flags = settings::builder();
            flags.set("opt_level", "speed").unwrap();
            let before = Flags::new(flags.clone());
            if flags.set(setting.name, value).is_err() {
                continue;
            }
            let changed = Flags::new(flags);
            if changed.to_string() == before.to_string() || setting.name == "opt_level" && value == "none" {
                continue;
            }
            if !others.insert(changed.to_string()) {
                continue;
            }
            let isa = isa::lookup_by_name("naplespu").unwrap().finish(changed);
            // The target may reject a value; then nothing can be compiled with it.
            if let Ok(isa) = isa {
                is_new(&isa, &small(), setting.name);
            }
        }
        assert!(!others.is_empty(), "a value for `{}` is missing here", setting.name);
    }
    let mut located = small();
    located.params.ensure_base_srcloc(SourceLoc::new(5));
    is_new(&plain, &located, "source location");
    let mut other = small();
    other.dfg.ext_funcs.values_mut().for_each(|data| data.colocated ^= true);
    is_new(&plain, &other, "callee");

    let mut renamed = small();
    renamed.name = cranelift_codegen::ir::UserFuncName::testcase("other");
    assert_eq!(cache.key(&plain, &renamed), cache.key(&plain, &small()));
}

/// Each part of the key alone changes the key.
#[test]
fn every_part_of_the_key_counts() {
    let cache = Cache::new(MemoryStore::default());
    let plain = target("speed");
    let key = |isa: &Isa, func: &Function| cache.key(isa, func);
    let same = key(&plain, &small());
    let mut keys = HashSet::from([same]);
    for &pass in Pass::ALL.iter().filter(|pass| plain.runs(**pass)) {
        assert!(
            keys.insert(key(&plain.without_pass(pass), &small())),
            "without {}",
            pass.name()
        );
    }
    // All boolean flags of Cranelift.
    let mut flipped = 0;
    for flag in plain.flags().iter() {
        let value = match flag.value_string().as_str() {
            "true" => "false",
            "false" => "true",
            _ => continue,
        };
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").unwrap();
        flags.set(flag.name, value).unwrap();
        if let Ok(isa) = isa::lookup_by_name("naplespu").unwrap().finish(Flags::new(flags)) {
            assert!(keys.insert(key(&isa, &small())), "{}", flag.name);
            flipped += 1;
        }
    }
    assert!(flipped > 10, "{flipped} flags");
    // Without passes, a program and the runtime differ only in this.
    let bare = |isa: Isa| Pass::ALL.iter().fold(isa, |isa, &pass| isa.without_pass(pass));
    let (program, runtime) = (bare((*plain).clone()), bare(plain.for_runtime()));
    assert_eq!(program.flags().to_string(), runtime.flags().to_string());
    assert_ne!(key(&program, &small()), key(&runtime, &small()));

    // Functions: each change of the text makes another key.
    let variants = [
        ("udiv v0, v1", "urem v0, v1"),
        ("udiv v0, v1", "udiv v1, v0"),
        ("udiv v0, v1", "udiv v0, v0"),
        ("call fn0(v2)", "call fn0(v1)"),
        ("return v3", "return v2"),
        ("%small(i32, i32) -> i32 system_v", "%small(i32, i32) -> i32 fast"),
        ("%small(i32, i32)", "%small(i32 sext, i32)"),
        ("fn0 = %callee(i32)", "ss0 = explicit_slot 8\n    fn0 = %callee(i32)"),
        ("v2 = udiv v0, v1", "v9 = iconst.i32 1\n    v2 = udiv v0, v1"),
        ("v2 = udiv v0, v1", "v9 = iconst.i32 2\n    v2 = udiv v0, v1"),
        ("v2 = udiv v0, v1", "v9 = load.i32 v0\n    v2 = udiv v0, v1"),
        ("v2 = udiv v0, v1", "v9 = load.i32 v0+4\n    v2 = udiv v0, v1"),
        ("v2 = udiv v0, v1", "v9 = load.i32 aligned v0\n    v2 = udiv v0, v1"),
    ];
    for (from, to) in variants {
        let text = SMALL.replace(from, to);
        assert_ne!(text, SMALL);
        let func = file("small.clif", text.as_bytes()).functions[0].func.clone();
        assert!(keys.insert(key(&plain, &func)), "{to}");
    }
    assert_eq!(key(&plain, &small()), same);
}

#[test]
fn stages_are_never_from_a_cache() {
    let cache = Arc::new(Cache::new(MemoryStore::default()));
    let isa = target("speed").with_cache(cache.clone());
    for _ in 0..2 {
        let mut ctx = Context::for_function(small());
        let request = [Stage::Vcode].into_iter().collect();
        let code = isa
            .compile_with_stages(&mut ctx, &mut ControlPlane::default(), request)
            .unwrap();
        assert_eq!(code.stages.len(), 1);
    }
    assert_eq!((cache.counts().hits, cache.counts().misses), (0, 0));
}

/// Returns the file of the only entry in a directory.
fn only_entry(folder: &Path) -> PathBuf {
    let inner = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let files: Vec<PathBuf> = std::fs::read_dir(inner)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1);
    files[0].clone()
}

#[test]
fn damaged_entries_are_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Arc::new(Cache::on_disk(folder.path()).unwrap());
    let isa = target("speed").with_cache(cache.clone());
    let fresh = text(compile(&isa, &small()));
    let path = only_entry(folder.path());
    let whole = std::fs::read(&path).unwrap();

    let mut wrong: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    wrong.extend((0..whole.len()).map(|at| {
        let mut entry = whole.clone();
        entry[at] ^= 1 << (at % 8);
        entry
    }));
    wrong.push([&whole[..], &[0]].concat());
    wrong.push(b"something else".to_vec());
    // The complete entry of another function.
    let other = tempfile::tempdir().unwrap();
    let elsewhere = target("none").with_cache(Arc::new(Cache::on_disk(other.path()).unwrap()));
    compile(&elsewhere, &small()).unwrap();
    wrong.push(std::fs::read(only_entry(other.path())).unwrap());

    for (number, entry) in wrong.iter().enumerate() {
        std::fs::write(&path, entry).unwrap();
        assert_eq!(text(compile(&isa, &small())), fresh, "{number}");
        assert_eq!(cache.counts().damaged, number as u64 + 1);
        assert_eq!(
            std::fs::read(&path).unwrap(),
            whole,
            "{number}: the entry is not replaced"
        );
    }
    assert_eq!(cache.counts().hits, 0);
    assert_eq!(text(compile(&isa, &small())), fresh);
    assert_eq!(cache.counts().hits, 1);
}

#[test]
fn a_folder_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(DiskStore::open(&file).is_err());
    // If the directory disappears, everything is compiled.
    let inner = folder.path().join("inner");
    let cache = Arc::new(Cache::on_disk(&inner).unwrap());
    std::fs::remove_dir(&inner).unwrap();
    std::fs::write(&inner, "").unwrap();
    let isa = target("speed").with_cache(cache.clone());
    for _ in 0..2 {
        compile(&isa, &small()).unwrap();
    }
    assert_eq!((cache.counts().hits, cache.counts().misses), (0, 2));
}

#[test]
fn places_are_folders_or_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let cache = Arc::new(Cache::open(&inner).unwrap());
    compile(&target("none").with_cache(cache), &small()).unwrap();
    assert!(only_entry(&inner).is_file());
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Cache::open(&file).unwrap_err().to_string();
    assert!(error.contains(&file.display().to_string()), "{error}");
    // No build has a store with this name.
    let error = Cache::open(Path::new("nowhere://secret@host")).unwrap_err().to_string();
    assert!(error.contains("`nowhere://`") && !error.contains("secret"), "{error}");
}

#[test]
fn processes_share_a_folder() {
    const NAME: &str = "processes_share_a_folder";
    let work = |folder: &Path| {
        let cache = Arc::new(Cache::on_disk(folder).unwrap());
        let isa = target("none").with_cache(cache.clone());
        let compiled = functions(&["corpus"])
            .iter()
            .filter(|func| compile(&isa, func).is_ok())
            .count();
        (cache.counts(), compiled as u64)
    };
    if let Some(folder) = std::env::var_os(FOLDER) {
        assert_eq!(work(Path::new(&folder)).0.damaged, 0);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut processes: Vec<_> = (0..3)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", NAME]).env(FOLDER, folder.path());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let (counts, compiled) = work(folder.path());
    assert!(compiled > 20);
    assert_eq!((counts.hits, counts.misses, counts.damaged), (compiled, 0, 0));
}

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn hostile_entries() {
    let isa = target("speed");
    let seeds: Vec<Vec<u8>> = functions(&["corpus", "opt"])
        .iter()
        .filter_map(|func| compile(&isa, func).ok())
        .map(|code| code.to_bytes())
        .filter(|bytes| bytes.len() < 2000)
        .take(20)
        .collect();
    assert_eq!(seeds.len(), 20);
    let mut random = Random(1);
    let mut read = 0;
    for iteration in 0..4000 {
        let mut data = seeds[iteration % seeds.len()].clone();
        for _ in 0..random.below(4) {
            let at = random.below(data.len());
            match random.below(4) {
                0 => data[at] = random.below(256) as u8,
                1 => data[at] = 0xff,
                2 => data.truncate(at.max(1)),
                _ => drop(data.splice(at..at, [0; 4])),
            }
        }
        read += usize::from(CompiledCode::from_bytes(&data).is_ok());
        fuzz::exercise_entry(&data).unwrap();
    }
    // Some damaged entries still contain valid code.
    assert!(read > 1000, "{read}");
}
