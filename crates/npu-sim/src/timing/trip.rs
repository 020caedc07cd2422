//! The path of a transaction of a cache controller if several cores share memory, in legs.

use std::fmt;

/// A place where a transaction spends cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The cache controller of the core, busy with other transactions.
    Controller,
    /// Hops of the network.
    Network,
    /// A link occupied by other messages.
    Link,
    /// The directory, busy with other requests or with another one for the same line.
    Directory,
    /// The second-level cache.
    SecondLevel,
    /// Memory, busy with other requests.
    MemoryTurn,
    /// Memory itself.
    Memory,
    /// Another core that had the line.
    OtherCore,
}

/// The number of places.
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

    /// Returns a short name of the place.
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

/// A part of the path of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The place.
    pub place: Place,
    /// The first cycle there.
    pub from: u64,
    /// The first cycle after it, not before `from`.
    pub to: u64,
}

impl Leg {
    /// Returns the number of cycles of the leg from cycle `from` on and before `to`.
    pub fn within(&self, from: u64, to: u64) -> u64 {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

/// The path of a transaction up to now.
#[derive(Clone, Debug, Default)]
pub(super) struct Trip {
    /// The current cycle of the transaction.
    pub at: u64,
    pub legs: Vec<Leg>,
}

impl Trip {
    /// Creates a trip that begins in cycle `at`.
    pub fn new(at: u64) -> Trip {
        Trip { at, legs: Vec::new() }
    }

    /// Stays at `place` until cycle `to`; does nothing if that cycle has passed.
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

    /// Stays at `place` for `cycles` cycles.
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
