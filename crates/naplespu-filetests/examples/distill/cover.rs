//! Selects functions and run lines by greedy covers.

use super::features::{Feature, Kind, kind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// The number of occurrences of each feature in the selection.
#[derive(Default)]
pub struct Chosen(HashMap<Feature, usize>);

impl Chosen {
    /// Adds the features of a selected item.
    pub fn add(&mut self, features: &[Feature]) {
        for &feature in features {
            *self.0.entry(feature).or_default() += 1;
        }
    }

    /// Returns how many of the features the selection lacks, without features of arguments. A
    /// function has as many of those as it has lines.
    pub fn gain_of_function(&self, features: &[Feature]) -> usize {
        let missing = |feature: &&Feature| {
            let (kind, wanted) = kind(**feature);
            kind != Kind::Argument && self.0.get(feature).copied().unwrap_or(0) < wanted
        };
        features.iter().filter(missing).count()
    }

    /// Returns how many of the features occur in the selection less often than required.
    pub fn gain(&self, features: &[Feature]) -> usize {
        let missing = |feature: &&Feature| self.0.get(feature).copied().unwrap_or(0) < kind(**feature).1;
        features.iter().filter(missing).count()
    }

    /// Returns for each kind the number of features, and how many of their required occurrences are
    /// missing although `before` has them.
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

    /// Returns the number of different features.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Selects from `count` items: repeatedly takes the item with the most missing features for its
/// cost, until no item has a missing feature.
///
/// `choose` is called for each selected item and adds the features of the item and of its
/// dependencies.
pub fn greedy(
    count: usize,
    chosen: &mut Chosen,
    gain: impl Fn(&Chosen, usize) -> (usize, usize),
    mut choose: impl FnMut(&mut Chosen, usize),
) {
    // A gain never increases, so the first entry of the heap that is still valid is the largest.
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

/// Selects lines of a function that together notice each change of `noticed`, by two lines if two
/// notice it. `noticed` has the lines for each change.
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
