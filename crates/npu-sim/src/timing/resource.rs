//! A resource that serves one request at a time, in the order of arrival: a link, the directory,
//! memory, a synchronization master.

use std::collections::VecDeque;

/// The occupied cycles of a resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Resource {
    /// The first cycle and the cycle after the last one of each span, in order, with free cycles
    /// between spans.
    taken: VecDeque<(u64, u64)>,
}

impl Resource {
    /// Occupies the resource for `length` cycles, starting with the first cycle from `at` on after
    /// which it is free for this long; returns that cycle. No later request concerns cycles before
    /// `past`.
    pub fn take(&mut self, at: u64, length: u64, past: u64) -> u64 {
        while self.taken.front().is_some_and(|&(_, to)| to <= past) {
            self.taken.pop_front();
        }
        if length == 0 {
            return at;
        }
        let (mut from, mut place) = (at, 0);
        for &(first, after) in &self.taken {
            if first >= from.saturating_add(length) {
                break;
            }
            from = from.max(after);
            place += 1;
        }
        let mut span = (from, from.saturating_add(length));
        // Adjacent spans are merged.
        if let Some(&(first, _)) = self.taken.get(place)
            && first == span.1
            && let Some((_, after)) = self.taken.remove(place)
        {
            span.1 = after;
        }
        match place.checked_sub(1).and_then(|before| self.taken.get_mut(before)) {
            Some(before) if before.1 == span.0 => before.1 = span.1,
            _ => self.taken.insert(place, span),
        }
        from
    }

    /// Returns the first cycle from `at` on in which the resource is free, without occupying it.
    pub fn free_at(&self, at: u64) -> u64 {
        let span = self.taken.iter().find(|&&(first, after)| first <= at && at < after);
        span.map_or(at, |&(_, after)| after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_first_goes_first_whoever_asked_first() {
        let mut resource = Resource::default();
        assert_eq!(resource.take(100, 10, 0), 100);
        // The gap before the first span has room for 10 cycles, not for 11.
        assert_eq!(resource.take(90, 11, 0), 110);
        assert_eq!(resource.take(90, 10, 0), 90);
        // 90 to 121 is occupied, in one span.
        assert_eq!(resource.taken, [(90, 121)]);
        assert_eq!(resource.take(95, 1, 0), 121);
        assert_eq!(resource.take(0, 0, 0), 0);
        assert_eq!(resource.take(130, 5, 0), 130);
        assert_eq!(resource.take(0, 8, 0), 0);
        assert_eq!(resource.take(120, 8, 0), 122);
        assert_eq!(resource.taken, [(0, 8), (90, 135)]);
        // Past spans are removed.
        assert_eq!(resource.take(200, 1, 135), 200);
        assert_eq!(resource.taken, [(200, 201)]);
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let mut resource = Resource::default();
        assert_eq!(resource.take(u64::MAX - 1, 9, 0), u64::MAX - 1);
        assert_eq!(resource.take(u64::MAX - 1, 9, 0), u64::MAX);
    }
}
