//! Tests of stores that hosts share, with the properties of a directory.

use crate::{compile, files, functions, only_entry, small, target, text};
use naplespu_cache::{Cache, SharedError, SharedStore};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The environment variable of child processes with the address of the shared store.
const ADDRESS: &str = "NAPLESPU_CACHE_TEST_ADDRESS";

fn address_of(folder: &Path) -> String {
    format!("fs://{}", folder.display())
}

fn open(address: &str) -> Arc<Cache> {
    Arc::new(Cache::open(Path::new(address)).unwrap())
}

#[test]
fn hits_are_what_compiling_gives() {
    let folder = tempfile::tempdir().unwrap();
    let functions = functions(&["codegen", "exceptions"]);
    let plain = target("speed");
    for address in [address_of(folder.path()), "memory://".to_owned()] {
        let cache = open(&address);
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
        assert!(compiled > 100, "{compiled}");
        assert!(counts.hits >= compiled, "{counts:?} of {compiled}");
        assert_eq!(counts.damaged, 0);
    }
    // A directory and a store over it have the same entries.
    let cache = Arc::new(Cache::on_disk(folder.path()).unwrap());
    compile(&plain.with_cache(cache.clone()), &functions[0]).unwrap();
    assert_eq!(cache.counts().hits, 1);
}

#[test]
fn damaged_entries_are_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&address_of(folder.path()));
    let isa = target("speed").with_cache(cache.clone());
    let fresh = text(compile(&isa, &small()));
    std::fs::remove_dir(folder.path().join(".partial")).unwrap();
    let path = only_entry(folder.path());
    let whole = std::fs::read(&path).unwrap();
    std::fs::create_dir(folder.path().join(".partial")).unwrap();
    for (number, entry) in [&whole[..whole.len() - 1], &[], b"something else"].iter().enumerate() {
        std::fs::write(&path, entry).unwrap();
        assert_eq!(text(compile(&isa, &small())), fresh, "{number}");
        assert_eq!(cache.counts().damaged, number as u64 + 1);
        assert_eq!(
            std::fs::read(&path).unwrap(),
            whole,
            "{number}: the entry is not replaced"
        );
    }
    assert_eq!(text(compile(&isa, &small())), fresh);
    assert_eq!(cache.counts().hits, 1);
}

#[test]
fn processes_share_a_store() {
    const NAME: &str = "shared::processes_share_a_store";
    let work = |address: &str| {
        let cache = open(address);
        let isa = target("none").with_cache(cache.clone());
        let compiled = functions(&["corpus"])
            .iter()
            .filter(|func| compile(&isa, func).is_ok())
            .count();
        (cache.counts(), compiled as u64)
    };
    if let Ok(address) = std::env::var(ADDRESS) {
        assert_eq!(work(&address).0.damaged, 0);
        return;
    }
    assert!(files(&["corpus"]).len() > 20);
    let folder = tempfile::tempdir().unwrap();
    let address = address_of(folder.path());
    let mut processes: Vec<_> = (0..3)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", NAME]).env(ADDRESS, &address);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let (counts, compiled) = work(&address);
    assert_eq!((counts.hits, counts.misses, counts.damaged), (compiled, 0, 0));
}

/// The store has its own thread, so compilation works within an asynchronous runtime.
#[test]
fn in_the_middle_of_a_future() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let counts = runtime.block_on(async {
        let cache = open("memory://");
        let isa = target("none").with_cache(cache.clone());
        for _ in 0..2 {
            compile(&isa, &small()).unwrap();
        }
        cache.counts()
    });
    assert_eq!((counts.hits, counts.misses), (1, 1));
}

#[test]
fn stores_that_cannot_be_used() {
    let error = |address: &str| SharedStore::open(address).unwrap_err();
    assert!(matches!(error("ftp://host/"), SharedError::Scheme { scheme } if scheme == "ftp"));
    assert!(matches!(error("fs://"), SharedError::Address { .. }));
    assert!(matches!(error("fs"), SharedError::Address { .. }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = error(&address_of(&file));
    assert!(file.to_string().contains("file"), "{file}");

    // If the store disappears, everything is compiled.
    let inner = folder.path().join("inner");
    let cache = open(&address_of(&inner));
    std::fs::remove_dir_all(&inner).unwrap();
    std::fs::write(&inner, "").unwrap();
    let isa = target("none").with_cache(cache.clone());
    for _ in 0..5 {
        compile(&isa, &small()).unwrap();
    }
    assert_eq!((cache.counts().hits, cache.counts().misses), (0, 5));
}

#[test]
fn an_operator_of_somebody_else() {
    let operator = opendal::Operator::new(opendal::services::Memory::default()).unwrap();
    let stores = [operator.clone(), operator].map(|operator| SharedStore::with_operator(operator).unwrap());
    // Two caches over one operator see each other's entries.
    let hits = stores.map(|store| {
        let cache = Arc::new(Cache::new(store));
        compile(&target("none").with_cache(cache.clone()), &small()).unwrap();
        cache.counts().hits
    });
    assert_eq!(hits, [0, 1]);
}
