//! Where a transaction of a cache controller is when several cores share memory: leg by leg.

use std::fmt;

/// Where a transaction spends cycles on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The cache controller of the core itself, which had other transactions.
    Controller,
    /// Hops of the network.
    Network,
    /// A link that other messages had taken.
    Link,
    /// The directory, which had other requests, or another one for the same line.
    Directory,
    /// The second-level cache.
    SecondLevel,
    /// Memory, which had other requests.
    MemoryTurn,
    /// Memory itself.
    Memory,
    /// Another core that had the line.
    OtherCore,
}

/// Number of places.
pub const PLACES: usize = 8;

impl Place {
    /// All places, in the order of their numbers.
    pub const ALL: [Place; PLACES] = [
        Place::Controller,
        Place::Network,
        Place::Link,
        Place::Directory,
        Place::SecondLevel,
        Place::MemoryTurn,
        Place::Memory,
        Place::OtherCore,
    ];

    /// The place in a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Controller => "turn at the controller",
            Place::Network => "network",
            Place::Link => "full link",
            Place::Directory => "directory",
            Place::SecondLevel => "L2",
            Place::MemoryTurn => "turn at memory",
            Place::Memory => "memory",
            Place::OtherCore => "other core",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of the way of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Where it was.
    pub place: Place,
    /// The first cycle there.
    pub from: u64,
    /// The first cycle after it, not before `from`.
    pub to: u64,
}

impl Leg {
    /// Cycles of the leg that are not before `from`, and before `to`.
    pub fn within(&self, from: u64, to: u64) -> u64 {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

/// The way of a transaction so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Trip {
    /// The cycle that it has come to.
    pub at: u64,
    pub legs: Vec<Leg>,
}

impl Trip {
    /// A way that begins in cycle `at`.
    pub fn new(at: u64) -> Trip {
        Trip { at, legs: Vec::new() }
    }

    /// It is at `place` until cycle `to`, or not at all if that has been.
    pub fn stay(&mut self, place: Place, to: u64) {
        if to <= self.at {
            return;
        }
        match self.legs.last_mut() {
            Some(last) if last.place == place => last.to = to,
            _ => self.legs.push(Leg {
                place,
                from: self.at,
                to,
            }),
        }
        self.at = to;
    }

    /// The same for so many cycles.
    pub fn spend(&mut self, place: Place, cycles: u64) {
        self.stay(place, self.at.saturating_add(cycles));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legs_follow_one_another() {
        let mut trip = Trip::new(10);
        trip.spend(Place::Network, 0);
        trip.spend(Place::Network, 3);
        trip.spend(Place::Network, 2);
        trip.stay(Place::Memory, 20);
        trip.stay(Place::Link, 19);
        let leg = |place, from, to| Leg { place, from, to };
        assert_eq!(trip.legs, [leg(Place::Network, 10, 15), leg(Place::Memory, 15, 20)]);
        assert_eq!(trip.at, 20);
        assert_eq!(trip.legs[0].within(12, 100), 3);
        assert_eq!(trip.legs[0].within(0, 11), 1);
        assert_eq!(trip.legs[0].within(15, 100), 0);
    }

    #[test]
    fn places_have_their_numbers() {
        assert!(Place::ALL.iter().enumerate().all(|(k, &place)| place as usize == k));
    }
}
