//! The decision tree of the decoder: which bits it tests, in which order, to identify an
//! instruction.
//!
//! Every leaf has checked all constant bits of its instruction, so the tree accepts only valid
//! words. Each node tests the most informative bits first: of the runs of bits that are constant in
//! all remaining candidates, the run with the most distinct values. If no such run separates
//! candidates, the node tests one bit that is constant in some candidates and an operand bit in
//! others; the latter are then in both branches.

/// An instruction in the tree.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The constant bits.
    pub base: u32,
    /// The mask of constant bits.
    pub fixed: u32,
    /// The identifier that a leaf returns.
    pub id: usize,
}

impl Candidate {
    /// Returns whether a word can match both.
    pub fn overlaps(&self, other: &Candidate) -> bool {
        (self.base ^ other.base) & self.fixed & other.fixed == 0
    }
}

/// A node.
#[derive(Debug, PartialEq, Eq)]
pub enum Tree {
    /// No instruction.
    Fail,
    /// The instruction, if the remaining constant bits match: `word & mask == value`.
    Leaf {
        /// Remaining constant bits.
        mask: u32,
        /// Their values.
        value: u32,
        /// The candidate's id.
        id: usize,
    },
    /// A test of `width` bits, starting at `lsb`; a value without an arm is not an instruction.
    Switch {
        /// Lowest bit.
        lsb: u32,
        /// Number of bits.
        width: u32,
        /// The arms, sorted by value.
        arms: Vec<(u32, Tree)>,
    },
}

/// Returns the mask of the `width` low bits.
pub fn low_mask(width: u32) -> u32 {
    if width >= 32 { u32::MAX } else { (1 << width) - 1 }
}

/// Builds the tree. Candidates must not overlap; if two do, the first wins.
pub fn build(candidates: &[Candidate]) -> Tree {
    node(candidates.to_vec(), 0)
}

fn node(candidates: Vec<Candidate>, known: u32) -> Tree {
    let Some(first) = candidates.first() else {
        return Tree::Fail;
    };
    let leaf = |c: &Candidate| Tree::Leaf {
        mask: c.fixed & !known,
        value: c.base & c.fixed & !known,
        id: c.id,
    };
    if candidates.len() == 1 {
        return leaf(first);
    }
    let common = candidates.iter().fold(u32::MAX, |mask, c| mask & c.fixed) & !known;
    let best = runs(common)
        .map(|(lsb, width)| (distinct(&candidates, lsb, width), lsb, width))
        .max_by_key(|&(values, lsb, _)| (values, lsb));
    let choice = match best {
        Some((values, lsb, width)) if values > 1 => Some((lsb, width)),
        _ => telling_bit(&candidates, known).map(|bit| (bit, 1)),
    };
    let Some((lsb, width)) = choice else {
        return leaf(first);
    };
    let mask = low_mask(width) << lsb;
    let mut values: Vec<u32> = candidates
        .iter()
        .filter(|c| c.fixed & mask == mask)
        .map(|c| (c.base & mask) >> lsb)
        .collect();
    values.sort_unstable();
    values.dedup();
    let arms = values
        .into_iter()
        .map(|value| {
            let inside = candidates
                .iter()
                .filter(|c| (c.base ^ (value << lsb)) & mask & c.fixed == 0)
                .copied()
                .collect();
            (value, node(inside, known | mask))
        })
        .collect();
    Tree::Switch { lsb, width, arms }
}

/// Returns the runs of ones in a mask, as (lowest bit, width).
pub fn runs(mask: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lsb = rest.trailing_zeros();
        let width = (rest >> lsb).trailing_ones();
        rest &= !(low_mask(width) << lsb);
        Some((lsb, width))
    })
}

fn distinct(candidates: &[Candidate], lsb: u32, width: u32) -> usize {
    let mask = low_mask(width) << lsb;
    let mut values: Vec<u32> = candidates.iter().map(|c| c.base & mask).collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// Returns a bit that is 0 in one candidate and 1 in another, and constant in as many as possible.
fn telling_bit(candidates: &[Candidate], known: u32) -> Option<u32> {
    (0..32)
        .filter(|bit| known >> bit & 1 == 0)
        .filter_map(|bit| {
            let fixed = candidates.iter().filter(|c| c.fixed >> bit & 1 == 1);
            let ones = fixed.clone().filter(|c| c.base >> bit & 1 == 1).count();
            let all = fixed.count();
            (ones > 0 && ones < all).then_some((all, bit))
        })
        .max()
        .map(|(_, bit)| bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(tree: &Tree, word: u32) -> Option<usize> {
        match tree {
            Tree::Fail => None,
            Tree::Leaf { mask, value, id } => (word & mask == *value).then_some(*id),
            Tree::Switch { lsb, width, arms } => {
                let value = word >> lsb & low_mask(*width);
                let arm = arms.iter().find(|(v, _)| *v == value)?;
                walk(&arm.1, word)
            }
        }
    }

    fn candidate(text: &str, id: usize) -> Candidate {
        let mut c = Candidate {
            base: 0,
            fixed: !low_mask(text.len() as u32),
            id,
        };
        for (i, ch) in text.bytes().rev().enumerate() {
            if ch != b'x' {
                c.fixed |= 1 << i;
                c.base |= u32::from(ch == b'1') << i;
            }
        }
        c
    }

    fn agrees_with_linear_search(texts: &[&str]) {
        let all: Vec<Candidate> = texts.iter().enumerate().map(|(id, text)| candidate(text, id)).collect();
        let tree = build(&all);
        for word in 0..1 << texts[0].len() {
            let linear = all.iter().find(|c| (word ^ c.base) & c.fixed == 0).map(|c| c.id);
            assert_eq!(walk(&tree, word), linear, "{word:b} in {tree:?}");
        }
    }

    #[test]
    fn the_tree_finds_what_a_linear_search_finds() {
        agrees_with_linear_search(&["00xxxx", "01xxx0", "10xx11", "1111x1"]);
        // No bit is constant in all of them.
        agrees_with_linear_search(&["0xx1", "x011", "1x0x"]);
        agrees_with_linear_search(&["xxxx"]);
        agrees_with_linear_search(&["1111111111", "0x1x0x1x01", "10xxxxxxxx", "110xxxxxx1"]);
    }

    #[test]
    fn overlap_is_seen() {
        assert!(candidate("0x1", 0).overlaps(&candidate("x01", 1)));
        assert!(!candidate("0x1", 0).overlaps(&candidate("1x1", 1)));
    }
}
