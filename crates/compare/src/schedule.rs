//! When each system measures: once per round, so that what the machine does meanwhile affects all
//! systems alike.

/// `(round, part)` in order, for parts with these numbers of rounds. Each round begins with another
/// part, so that none of them always follows the same one.
pub(crate) fn order(rounds: &[u32]) -> Vec<(u32, usize)> {
    let most = rounds.iter().copied().max().unwrap_or(0);
    let mut order = Vec::new();
    for round in 0..most {
        let mut parts: Vec<usize> = (0..rounds.len()).filter(|part| rounds[*part] > round).collect();
        let first = round as usize % parts.len().max(1);
        parts.rotate_left(first);
        order.extend(parts.into_iter().map(|part| (round, part)));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_rounds_and_they_interleave() {
        let order = order(&[3, 1, 3]);
        for (part, rounds) in [(0, 3), (1, 1), (2, 3)] {
            let own: Vec<u32> = order.iter().filter(|(_, at)| *at == part).map(|(round, _)| *round).collect();
            assert_eq!(own, (0..rounds).collect::<Vec<_>>());
        }
        assert_eq!(order, [(0, 0), (0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 2)]);
        assert!(super::order(&[]).is_empty());
    }
}
