//! What a core has to do with the others: lines that it loses to them, and where what it reads was meanwhile.

use super::core::Core;
use super::network::Network;
use super::sink::Sink;

impl Core {
    /// Gives up the lines that other cores have taken until cycle `now`.
    #[inline]
    pub(super) fn hear_of_losses(&mut self, now: u64, network: &mut Network) {
        if network.shared {
            while let Some(loss) = network.news(self.number, now) {
                self.data.lose(loss.line, loss.shares);
            }
        }
    }

    /// Tells where a line will be on its way, if the controller has just asked for one.
    #[inline]
    pub(super) fn tell_of_reads<S: Sink>(&self, network: &mut Network, sink: &mut S) {
        if network.shared
            && let Some((line, instructions, legs)) = network.take_read()
        {
            sink.line_asked_for(self.number, line, instructions, &legs);
        }
    }
}
