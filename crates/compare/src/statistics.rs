//! Median and spread of a few rounds.

/// The median of the values; NaN if there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (count, middle) if count.is_multiple_of(2) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (_, middle) => sorted[middle],
    }
}

/// The distance from the least value to the greatest, as a share of the median; zero for fewer than
/// two values.
pub fn spread(values: &[f64]) -> f64 {
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(*v), m.max(*v)));
    let middle = median(values);
    if values.len() < 2 || middle == 0.0 { 0.0 } else { (most - least) / middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_nothing() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn spread_is_relative() {
        assert_eq!(spread(&[9.0, 10.0, 12.0]), 0.3);
        assert_eq!(spread(&[7.0]), 0.0);
        assert_eq!(spread(&[]), 0.0);
    }
}
