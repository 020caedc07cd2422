//! Exhaustive exploration of the lock of atomic operations between cores (`machine_enter.s`): every
//! order of the cores' accesses to the words of the lock, and of the arrivals of their writes.
//!
//! A core's writes wait in a queue, in order, and reach memory at any later time; a read may
//! overtake them. Memory performs one write or one read of a word at a time. The test
//! finds all reachable states of two and three cores. It checks that two cores never hold the lock,
//! and that each waiting core can still get it. A core that repeats a write of the same value is not
//! modeled; that changes no word.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The largest number of cores.
const CORES: usize = 3;
/// The highest number that a core takes. A core that needs a higher one withdraws.
const LIMIT: u8 = 5;
/// The highest word of a core that has no number.
const CHOOSING: u8 = 2;
/// The most writes of a core on their way: a release and the next announcement, and one more that the
/// test excludes.
const WRITES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// The core requests the lock, or never will.
    Idle,
    /// Waits for its announcement.
    Announce,
    /// Reads the words of the others in order; `highest` is the highest word so far.
    Choose {
        core: u8,
        highest: u8,
    },
    /// Waits for its number.
    Number {
        number: u8,
    },
    /// Waits for the cores in order.
    Look {
        core: u8,
        number: u8,
    },
    /// The core holds the lock.
    Hold,
    Withdrawn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Core {
    step: Step,
    /// The core's word in memory.
    word: u8,
    /// The writes on their way, the oldest first.
    writes: [Option<u8>; WRITES],
    /// The word of the last announcement.
    announced: u8,
}

type State = [Core; CORES];

fn post(core: &mut Core, word: u8) {
    if let Some(free) = core.writes.iter_mut().find(|write| write.is_none()) {
        *free = Some(word);
    }
}

/// Returns the state after a step of a core.
fn step(state: &State, index: usize, cores: usize, alternates: bool) -> State {
    let mut next = *state;
    let words = state.map(|core| core.word);
    let core = &mut next[index];
    if core.writes[WRITES - 1].is_some() {
        return next;
    }
    core.step = match core.step {
        Step::Idle | Step::Withdrawn => {
            if alternates {
                core.announced = CHOOSING + 1 - core.announced;
            }
            post(core, core.announced);
            Step::Announce
        }
        Step::Announce if core.word != core.announced => Step::Announce,
        Step::Announce => Step::Choose { core: 0, highest: 0 },
        Step::Choose { core: other, highest } if usize::from(other) == index => Step::Choose {
            core: other + 1,
            highest,
        },
        Step::Choose { core: other, highest } if usize::from(other) < cores => Step::Choose {
            core: other + 1,
            highest: highest.max(words[usize::from(other)]),
        },
        Step::Choose { highest: 0, .. } => Step::Hold,
        Step::Choose { highest, .. } if highest == LIMIT => {
            post(core, 0);
            Step::Withdrawn
        }
        Step::Choose { highest, .. } => {
            let number = highest.max(CHOOSING) + 1;
            post(core, number);
            Step::Number { number }
        }
        Step::Number { number } if core.word != number => Step::Number { number },
        Step::Number { number } => Step::Look { core: 0, number },
        Step::Look { core: other, number } if usize::from(other) < cores => {
            let word = words[usize::from(other)];
            let blocks = word != 0 && (word < number || word == number && usize::from(other) < index);
            Step::Look {
                core: other + u8::from(!blocks),
                number,
            }
        }
        Step::Look { .. } => Step::Hold,
        Step::Hold => {
            post(core, 0);
            Step::Idle
        }
    };
    next
}

/// Returns the state after the oldest write of a core has reached memory, if there is one.
fn arrive(state: &State, index: usize) -> Option<State> {
    let mut next = *state;
    let core = &mut next[index];
    core.word = core.writes[0]?;
    core.writes.rotate_left(1);
    core.writes[WRITES - 1] = None;
    Some(next)
}

/// Returns all reachable states with the successors of each.
fn explore(cores: usize, alternates: bool) -> (Vec<State>, Vec<Vec<u32>>) {
    let start = [Core {
        step: Step::Idle,
        word: 0,
        writes: [None; WRITES],
        announced: 1,
    }; CORES];
    let mut numbers = HashMap::from([(start, 0)]);
    let (mut states, mut successors) = (vec![start], Vec::new());
    while successors.len() < states.len() {
        let state = states[successors.len()];
        let steps = (0..cores).map(|core| step(&state, core, cores, alternates));
        let arrivals = (0..cores).filter_map(|core| arrive(&state, core));
        let mut row = Vec::new();
        for after in steps.chain(arrivals) {
            row.push(match numbers.entry(after) {
                Entry::Occupied(number) => *number.get(),
                Entry::Vacant(place) => {
                    let number = states.len() as u32;
                    states.push(after);
                    *place.insert(number)
                }
            });
        }
        successors.push(row);
    }
    (states, successors)
}

fn holders(state: &State) -> usize {
    state.iter().filter(|core| core.step == Step::Hold).count()
}

/// Returns the number of states from which `core` cannot get the lock any more.
fn lost(states: &[State], successors: &[Vec<u32>], core: usize) -> usize {
    let mut before = vec![Vec::new(); states.len()];
    for (state, row) in successors.iter().enumerate() {
        for &to in row {
            before[to as usize].push(state);
        }
    }
    let mut reaches: Vec<bool> = states.iter().map(|state| state[core].step == Step::Hold).collect();
    let mut open: Vec<usize> = (0..states.len()).filter(|&state| reaches[state]).collect();
    while let Some(state) = open.pop() {
        for &from in &before[state] {
            if !std::mem::replace(&mut reaches[from], true) {
                open.push(from);
            }
        }
    }
    reaches.iter().filter(|reaches| !**reaches).count()
}

#[test]
fn one_core_has_the_lock_and_each_can_get_it() {
    for cores in 2..=CORES {
        let (states, successors) = explore(cores, true);
        for state in &states {
            assert!(holders(state) <= 1, "{state:?}");
            assert!(state.iter().all(|core| core.writes[WRITES - 1].is_none()), "{state:?}");
        }
        for core in 0..cores {
            assert_eq!(lost(&states, &successors, core), 0, "core {core} of {cores}");
        }
        let withdrawn = states.iter().flatten().any(|core| core.step == Step::Withdrawn);
        assert!(withdrawn, "the limit of numbers was not reached");
        println!("{cores} cores: {} states", states.len());
    }
}

/// With equal announcements, a core takes the old one for the new one.
#[test]
fn announcements_have_to_alternate() {
    let (states, _) = explore(2, false);
    assert!(states.iter().any(|state| holders(state) > 1));
}
