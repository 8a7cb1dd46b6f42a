//! A cascade of nodes in one process, for more children than one logical node may have.

use trib_wire::ids::CHILDREN_MAX;

/// Deals `count` children (more than one node may have) to the fewest levels of nodes. It returns
/// the sizes of contiguous blocks, each of which becomes one node. A block may still be too large,
/// and is then dealt again.
///
/// Sizes differ by at most one, so that no node of a level has much more to fold than its
/// neighbours.
pub(crate) fn blocks(count: usize) -> Vec<usize> {
    let mut reach = CHILDREN_MAX;
    while reach * CHILDREN_MAX < count {
        reach *= CHILDREN_MAX;
    }
    let blocks = count.div_ceil(reach);
    (0..blocks).map(|i| (i + 1) * count / blocks - i * count / blocks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_few_balanced_and_complete() {
        for count in (65..5000).chain([4096 * 64, 1 << 20]) {
            let blocks = blocks(count);
            let (least, most) = (blocks.iter().min().unwrap(), blocks.iter().max().unwrap());
            assert_eq!(blocks.iter().sum::<usize>(), count);
            assert!((2..=CHILDREN_MAX).contains(&blocks.len()), "{count}");
            assert!(most - least <= 1 && *least > 1, "{count}");
        }
        assert_eq!(blocks(65), [32, 33]);
    }
}
