//! Pseudo-LRU, the replacement policy of the caches of several cores, as a tree of bits.

/// Returns the next victim in a set of `ways` ways, a power of two up to 8. The bits of the tree
/// select the half that was used less recently.
pub(crate) fn victim(tree: u8, ways: usize) -> usize {
    let mut node = 1;
    while node < ways {
        node = 2 * node + usize::from(tree >> node & 1);
    }
    node - ways
}

/// Returns the tree after a use of `way`: every bit on the path to it points to the other half.
pub(crate) fn used(tree: u8, ways: usize, way: usize) -> u8 {
    let (mut tree, mut node) = (tree, ways + way % ways);
    while node > 1 {
        let parent = node / 2;
        let bit = 1 << parent;
        tree = if node & 1 == 0 { tree | bit } else { tree & !bit };
        node = parent;
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_gives_up_what_was_used_longest_ago_of_each_half() {
        let mut tree = 0;
        let mut order = Vec::new();
        for _ in 0..8 {
            let way = victim(tree, 8);
            order.push(way);
            tree = used(tree, 8, way);
        }
        assert_eq!(order, [0, 4, 2, 6, 1, 5, 3, 7]);
        let mut tree = [0, 1, 2, 3].into_iter().fold(0, |tree, way| used(tree, 4, way));
        assert_eq!(victim(tree, 4), 0);
        // After a use of way 0 the other half is the older one, and in it way 2 is older than way
        // 3.
        tree = used(tree, 4, 0);
        assert_eq!(victim(tree, 4), 2);
    }
}
