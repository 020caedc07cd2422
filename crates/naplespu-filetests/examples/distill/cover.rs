//! The choice of functions and of run lines: greedy covers.

use super::features::{Feature, Kind, kind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// How often each feature is there among what was chosen.
#[derive(Default)]
pub struct Chosen(HashMap<Feature, usize>);

impl Chosen {
    /// Adds the features of something that was chosen.
    pub fn add(&mut self, features: &[Feature]) {
        for &feature in features {
            *self.0.entry(feature).or_default() += 1;
        }
    }

    /// The same without what arguments show, of which a function has as many as it has lines.
    pub fn gain_of_function(&self, features: &[Feature]) -> usize {
        let missing = |feature: &&Feature| {
            let (kind, wanted) = kind(**feature);
            kind != Kind::Argument && self.0.get(feature).copied().unwrap_or(0) < wanted
        };
        features.iter().filter(missing).count()
    }

    /// How many of the features are wanted more often than they are there.
    pub fn gain(&self, features: &[Feature]) -> usize {
        let missing = |feature: &&Feature| self.0.get(feature).copied().unwrap_or(0) < kind(**feature).1;
        features.iter().filter(missing).count()
    }

    /// How many features of each kind are there, and how often all of them are wanted in vain, where `before` has them more often.
    pub fn kinds(&self, before: &Chosen) -> BTreeMap<String, (usize, usize)> {
        let mut kinds = BTreeMap::new();
        for (&feature, &count) in &before.0 {
            let (kind, wanted) = kind(feature);
            let sums: &mut (usize, usize) = kinds.entry(format!("{kind:?}")).or_default();
            sums.0 += 1;
            sums.1 += count
                .min(wanted)
                .saturating_sub(self.0.get(&feature).copied().unwrap_or(0));
        }
        kinds
    }

    /// How many features are there at all.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Chooses from `count` things: always the one with the most missing features for its cost, until no feature is missing that any of them has.
/// `choose` is told of each choice, and adds what comes with it.
pub fn greedy(
    count: usize,
    chosen: &mut Chosen,
    gain: impl Fn(&Chosen, usize) -> (usize, usize),
    mut choose: impl FnMut(&mut Chosen, usize),
) {
    // A gain only falls, so that the first one that is still right is the largest.
    let value = |chosen: &Chosen, at: usize| {
        let (gain, cost) = gain(chosen, at);
        (gain > 0).then(|| gain as u64 * 1_000_000 / cost.max(1) as u64)
    };
    let mut heap: BinaryHeap<(u64, Reverse<usize>)> = BinaryHeap::new();
    heap.extend((0..count).filter_map(|at| Some((value(chosen, at)?, Reverse(at)))));
    while let Some((old, Reverse(at))) = heap.pop() {
        match value(chosen, at) {
            None => {}
            Some(now) if now == old || heap.peek().is_none_or(|&(next, _)| now >= next) => choose(chosen, at),
            Some(now) => heap.push((now, Reverse(at))),
        }
    }
}

/// The lines of a function that together notice each change that all of them notice, twice where two do: `noticed` has for each change its lines.
pub fn lines(count: usize, noticed: &[Vec<u16>]) -> Vec<bool> {
    let mut changes_of: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (change, lines) in noticed.iter().enumerate() {
        for &line in lines {
            changes_of[usize::from(line)].push(change);
        }
    }
    let mut open: Vec<usize> = noticed.iter().map(|lines| lines.len().min(2)).collect();
    let mut kept = vec![false; count];
    loop {
        let gains = (0..count).filter(|&line| !kept[line]).map(|line| {
            let gain = changes_of[line].iter().filter(|&&change| open[change] > 0).count();
            (gain, Reverse(line))
        });
        match gains.max() {
            Some((gain, Reverse(line))) if gain > 0 => {
                kept[line] = true;
                changes_of[line]
                    .iter()
                    .for_each(|&change| open[change] = open[change].saturating_sub(1));
            }
            _ => return kept,
        }
    }
}
