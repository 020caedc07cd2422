//! Interactions of a core with the others: lines that it loses to them, and the paths of its reads.

use super::core::Core;
use super::network::Network;
use super::sink::Sink;

impl Core {
    /// Drops the lines that other cores have taken up to cycle `now`.
    #[inline]
    pub(super) fn hear_of_losses(&mut self, now: u64, network: &mut Network) {
        if network.shared {
            while let Some(loss) = network.news(self.number, now) {
                self.data.lose(loss.line, loss.shares);
            }
        }
    }

    /// Reports the path of a line, if the controller has just requested one.
    #[inline]
    pub(super) fn tell_of_reads<S: Sink>(&self, network: &mut Network, sink: &mut S) {
        if network.shared
            && let Some((line, instructions, legs)) = network.take_read()
        {
            sink.line_asked_for(self.number, line, instructions, &legs);
        }
    }
}
