//! The coherence protocol with its faults: each fault is found by its smallest program, and programs
//! that obey the rules of `docs/machine/several-cores.md` pass in all orders.

use npu_sim::coherence::Operation::{
    Add, Await, Barrier, Evict, Flush, Invalidate, Load, Lock, NonCoherent, Store, Unlock,
};
use npu_sim::coherence::{Event, Explored, Failure, Fault, Kind, Operation, Program, Wrong, explore};

/// The most states of a program.
const LIMIT: usize = 400_000;

/// A word whose home is a tile, in set 0; `k` counts the lines of the set.
const fn word(home: u32, k: u32) -> u32 {
    (home << 28) + 0x1_0000 + k * 0x2000
}

const A: u32 = word(0, 0);

fn explore_all(cores: &[&[Operation]], evictions: bool) -> Explored {
    let program = Program {
        cores: cores.iter().map(|core| core.to_vec()).collect(),
        evictions,
    };
    let explored = explore(&program, LIMIT);
    println!("{} states, {} ends", explored.states, explored.ends);
    explored
}

fn describe(failure: &Failure) -> String {
    let path: Vec<String> = failure.path.iter().map(Event::to_string).collect();
    format!("{:?} {:?}\n{}", failure.wrong, failure.hung, path.join("\n"))
}

#[track_caller]
fn passes(cores: &[&[Operation]], evictions: bool) {
    let explored = explore_all(cores, evictions);
    let failure = explored.hang.as_ref().or(explored.wrong.as_ref());
    assert_eq!(failure.map(describe), None);
    assert!(explored.passes() && explored.ends > 0, "{explored:?}");
}

/// Returns the first hang.
#[track_caller]
fn hang(cores: &[&[Operation]]) -> Failure {
    let explored = explore_all(cores, false);
    let hang = explored.hang.expect("a hang");
    println!("{}", describe(&hang));
    hang
}

/// Returns the first wrong value.
#[track_caller]
fn wrong(cores: &[&[Operation]]) -> Failure {
    let explored = explore_all(cores, false);
    let wrong = explored.wrong.expect("a wrong value");
    println!("{}", describe(&wrong));
    wrong
}

fn arrives(failure: &Failure, wanted: Kind) -> bool {
    let is_wanted = |event: &Event| matches!(event, Event::Message { kind, .. } if *kind == wanted);
    failure.path.iter().any(is_wanted)
}

#[test]
fn an_invalidation_of_a_read_line_hangs() {
    let hang = hang(&[&[Load(A), Invalidate(A)]]);
    assert_eq!(hang.hung, [(0, Some(Fault::InvalidationOfReadLine))]);
    // The directory still counts the core as a sharer, so a store of another core waits for it.
    let other = self::hang(&[&[Load(A), Barrier, Invalidate(A)], &[Barrier, Store(A, 1)]]);
    assert_eq!(other.hung, [(0, Some(Fault::InvalidationOfReadLine)), (1, None)]);
    passes(&[&[Store(A, 1), Invalidate(A), Invalidate(A), Load(A)]], false);
}

#[test]
fn a_flush_of_a_line_that_others_share_hangs_the_next_store() {
    let found = hang(&[&[Flush(A), Barrier, Store(A, 1)], &[Load(A), Barrier]]);
    assert_eq!(found.hung, [(0, None)]);
    assert!(arrives(&found, Kind::DirFlush));
    // The store of a third core hangs, too.
    hang(&[&[Flush(A)], &[Load(A)], &[Store(A, 1)]]);
    passes(&[&[Store(A, 1), Flush(A), Barrier], &[Barrier, Load(A)]], false);
}

#[test]
fn an_eviction_during_a_load_hangs_the_next_store_if_the_home_is_the_evicting_core() {
    let found = hang(&[&[Store(A, 1), Evict(A)], &[Load(A), Store(A, 2)]]);
    assert!(arrives(&found, Kind::FwdGetS) && arrives(&found, Kind::PutM));
}

#[test]
fn an_eviction_during_a_load_loses_another_line_of_the_home() {
    let (a, b) = (word(3, 0), word(3, 1));
    let found = wrong(&[
        &[Store(a, 1), Barrier, Evict(a), Load(b)],
        &[Store(b, 2), Barrier, Load(a)],
    ]);
    assert!(arrives(&found, Kind::PutM));
    assert!(matches!(found.wrong, Some(Wrong::Lost { .. } | Wrong::Load { .. })));
}

#[test]
fn late_acknowledgments_leave_stale_copies() {
    let a = word(4, 0);
    let found = wrong(&[
        &[Barrier, Store(a, 1), Barrier, Barrier, Store(a, 2)],
        &[Load(a), Barrier, Barrier, Load(a), Barrier, Load(a), Load(a)],
        &[Barrier, Barrier, Load(a), Barrier],
    ]);
    assert!(arrives(&found, Kind::InvAck));
}

/// The number of acknowledgments is also that of an earlier load, so one other reader is enough.
#[test]
fn a_store_after_a_load_of_its_word_completes_too_early() {
    let program: [&[Operation]; 2] = [
        &[Barrier, Load(A), Barrier, Store(A, 2)],
        &[Load(A), Barrier, Barrier, Load(A), Load(A)],
    ];
    let found = wrong(&program);
    assert!(arrives(&found, Kind::InvAck));
    // A load of another word has another address.
    passes(
        &[
            &[Barrier, Load(A + 4), Barrier, Store(A, 2)],
            &[Load(A), Barrier, Barrier, Load(A), Load(A)],
        ],
        false,
    );
}

/// The acknowledgment of the eviction overtakes the message that asks for the line.
#[test]
fn an_eviction_during_a_store_hangs_the_store() {
    for first in [Store(A, 1), Load(A)] {
        let found = hang(&[&[first, Barrier, Evict(A)], &[Barrier, Store(A, 2)]]);
        assert_eq!(found.hung, [(1, None)]);
        assert!(arrives(&found, Kind::PutAck));
    }
}

#[test]
fn a_non_coherent_load_overtakes_the_write_of_its_line() {
    let found = wrong(&[&[NonCoherent(true), Store(A, 1), Invalidate(A), Load(A)]]);
    let expected = Wrong::Load {
        core: 0,
        address: A,
        value: 0,
        expected: 1,
    };
    assert_eq!(found.wrong, Some(expected));
    wrong(&[&[NonCoherent(true), Store(A, 1), Evict(A), Load(A)]]);
    passes(&[&[NonCoherent(true), Store(A, 1), Invalidate(A), Await(A, 1)]], false);
    let begins = hang(&[&[Store(A, 1), Evict(A), NonCoherent(true), Load(A)]]);
    assert_eq!(begins.hung, [(0, Some(Fault::EvictionBeforeLoad))]);
}

#[test]
fn private_lines_with_evictions_pass() {
    let lines = |core: u32| {
        let [a, b] = [0, 1].map(|k| word(0, 2 * core + k));
        [Add(a), Add(b), Add(a), Load(b), Load(a)]
    };
    passes(&[&lines(0)], true);
    passes(&[&lines(0), &lines(1)], true);
    let (first, second) = (word(1, 0), word(1, 1));
    passes(&[&[Add(first), Load(second), Add(first), Flush(first)]], true);
}

#[test]
fn lines_that_are_only_read_pass_with_evictions() {
    let [a, b] = [0, 1].map(|k| word(0, k));
    let reads = [Load(a), Load(b), Load(a)];
    passes(&[&reads, &reads], true);
    passes(&[&[Load(a), Load(b)], &[Load(b), Load(a)], &[Load(a)]], true);
}

#[test]
fn lines_that_change_hands_without_evictions_pass() {
    passes(
        &[
            &[Store(A, 1), Barrier, Barrier],
            &[Barrier, Load(A), Barrier, Store(A, 2)],
        ],
        false,
    );
    // Without a load of the same word before, no number of acknowledgments is inherited.
    passes(
        &[&[Store(A, 1), Store(A + 4, 2)], &[Store(A + 8, 1), Store(A + 12, 2)]],
        false,
    );
    passes(&[&[Store(A, 1)], &[Load(A)], &[Store(A + 4, 1)]], false);
}

/// The accesses of `atomics=machine` to its data: load, store and `dcache_inv` under a lock.
#[test]
fn the_accesses_of_machine_atomics_pass() {
    for home in [0, 1, 5] {
        let a = word(home, 0);
        let add = [Lock, Load(a), Add(a), Invalidate(a), Unlock];
        let twice: Vec<Operation> = add.iter().chain(&add).copied().collect();
        passes(&[&twice, &twice], false);
        passes(&[&add, &add, &add], false);
    }
    // An eviction by another thread, for which `dcache_inv` does not wait: a store that misses at the
    // same home, as the release has one, waits for it.
    let add = |other: u32| {
        let data = [Lock, Load(A), Add(A), Evict(A), Invalidate(A)];
        let release = [Store(other, 0), Invalidate(other), Unlock];
        data.into_iter().chain(release).collect::<Vec<Operation>>()
    };
    passes(&[&add(word(0, 1)), &add(word(0, 2))], false);
    let elsewhere = explore_all(&[&add(word(1, 1)), &add(word(1, 2))], false);
    assert!(elsewhere.hang.is_some());
    // Without `dcache_inv`, an eviction meets the load or the store of another core.
    let add = [Lock, Load(A), Add(A), Unlock, Evict(A)];
    let explored = explore_all(&[&add, &add], false);
    assert!(explored.hang.is_some());
}

/// The writes of the lock of `atomics=machine`: the line is in memory when the core has read it
/// there, and another core can read it.
#[test]
fn the_writes_of_the_lock_pass() {
    let (own, other) = (word(2, 0), word(2, 1));
    let publish = |value: u32| {
        [
            Store(own, value),
            Invalidate(own),
            Store(other, 0),
            Invalidate(other),
            Flush(own),
            NonCoherent(true),
            Await(own, value),
            NonCoherent(false),
        ]
    };
    let twice: Vec<Operation> = publish(1).into_iter().chain(publish(2)).collect();
    passes(&[&twice], false);
    passes(&[&publish(1), &[NonCoherent(true), Await(own, 1)]], false);
    // An eviction of either line by another thread, for which `dcache_inv` does not wait.
    for line in [own, other] {
        for place in 0..publish(1).len() {
            let mut evicted = publish(1).to_vec();
            evicted.insert(place, Evict(line));
            passes(&[&evicted], false);
        }
    }
    // Without the store to the other line, the region begins while the eviction is on its way.
    let mut short = publish(1).to_vec();
    short.drain(2..4);
    short.insert(1, Evict(own));
    assert!(explore_all(&[&short], false).hang.is_some());
    // Two cores write their words and read the other one.
    let both = |mine: u32, its: u32| {
        let write = [
            Store(word(2, mine), 1),
            Invalidate(word(2, mine)),
            Store(word(2, mine + 1), 0),
            Invalidate(word(2, mine + 1)),
            Flush(word(2, mine)),
            NonCoherent(true),
        ];
        let read = [Await(word(2, mine), 1), Await(word(2, its), 1)];
        write.into_iter().chain(read).collect::<Vec<Operation>>()
    };
    passes(&[&both(0, 2), &both(2, 0)], false);
}
