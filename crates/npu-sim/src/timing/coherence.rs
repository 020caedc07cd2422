//! Interactions of a core with the others: lines that it loses to them.

use super::core::Core;
use super::network::Network;

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
}
