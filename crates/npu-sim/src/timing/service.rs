//! Messages of the service network: accesses to I/O space, and barriers
//! (`docs/machine/several-cores.md`).

use super::mesh::{Message, Net};
use super::network::{LAST_DESTINATION, Network, REQUEST_TO_MESSAGE, Unit};
use super::request::Asks;
use super::trip::Trip;
use npu_mc::machine;

/// The flits of a message.
const WITH_WORD: u32 = machine::WORD_FLITS;
const IO_TO_END: u64 = machine::IO_MESSAGE_TO_END as u64;
/// Cycles from a release that a sync master sends to the issue of the next instruction, apart from
/// its message.
const RELEASE_TO_ISSUE: u64 = machine::RELEASE_TO_ISSUE as u64;

impl Network {
    /// Reads from I/O space. Returns the cycle in which the read has ended.
    pub fn read_io(&mut self, asks: Asks) -> u64 {
        let (there, mut trip) = self.send_io(asks);
        let back = Message {
            from: there.to,
            to: there.from,
            ..there
        };
        self.send(Unit::Service, back, &mut trip, asks.now);
        trip.at + IO_TO_END
    }

    /// Writes to I/O space. Returns the cycle in which the next access can start: the core does not
    /// wait for the host.
    pub fn write_io(&mut self, asks: Asks) -> u64 {
        self.send_io(asks);
        asks.start + u64::from(WITH_WORD) + LAST_DESTINATION
    }

    /// Sends a message of an access to I/O space to the host.
    fn send_io(&mut self, asks: Asks) -> (Message, Trip) {
        let mut trip = Trip::new(asks.start + REQUEST_TO_MESSAGE);
        let message = Message {
            from: self.tile(asks.core),
            to: self.topology().host_tile(),
            net: Net::Service,
            flits: WITH_WORD,
        };
        self.send(Unit::Core, message, &mut trip, asks.now);
        (message, trip)
    }

    /// Returns the cycle in which the arrival of a thread at a barrier, which `core` sends in cycle
    /// `now`, reaches the sync master of `tile`.
    pub fn arrival(&mut self, core: usize, tile: u32, now: u64) -> u64 {
        let mut trip = Trip::new(now);
        let message = Message {
            from: self.tile(core),
            to: tile,
            net: Net::Service,
            flits: WITH_WORD,
        };
        self.send_copy(Unit::Core, message, &mut trip, now);
        trip.at
    }

    /// Returns the cycle in which threads of `core` issue again after a release that the sync master
    /// of `tile` sends in cycle `at`; the current cycle is `now`.
    pub fn reaches(&mut self, tile: u32, core: usize, at: u64, now: u64) -> u64 {
        let mut trip = Trip::new(at);
        let message = Message {
            from: tile,
            to: self.tile(core),
            net: Net::Service,
            flits: WITH_WORD,
        };
        self.send_copy(Unit::Service, message, &mut trip, now);
        trip.at + RELEASE_TO_ISSUE
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::TimingConfig;
    use super::*;

    #[test]
    fn io_and_barriers_take_their_ways() {
        let mut network = Network::new(TimingConfig::default());
        network.shared = true;
        for tile in [0, 5] {
            network.add_core(tile);
        }
        let asks = Asks {
            core: 0,
            seen: 5000,
            now: 5000,
            start: 5000,
        };
        // The host is in tile 14, five hops from tile 0.
        assert_eq!(network.read_io(asks), 5000 + 3 + 17 + 17 + IO_TO_END);
        assert_eq!(network.arrival(0, 5, 6000), 6000 + 7 + 4);
        assert_eq!(network.reaches(5, 1, 6000, 6000), 6000 + 7 + RELEASE_TO_ISSUE);
    }
}
