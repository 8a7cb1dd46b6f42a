"""The 95 % interval of a ratio that was measured in pairs."""

import math
import statistics

LEVEL = 0.95


def signed_rank_counts(pairs):
    """How many of the 2 ** pairs sign patterns have each sum of positive ranks."""
    counts = [1]
    for rank in range(1, pairs + 1):
        longer = [0] * (len(counts) + rank)
        for total, count in enumerate(counts):
            longer[total] += count
            longer[total + rank] += count
        counts = longer
    return counts


def cut(pairs):
    """How many of the smallest averages of two, and of the largest, lie outside the interval."""
    counts, below = signed_rank_counts(pairs), 0
    for outside, count in enumerate(counts):
        below += count
        if below / 2 ** pairs > (1 - LEVEL) / 2:
            return outside
    return 0


def of_ratio(ratios):
    """(median, lower end, upper end): the interval of Wilcoxon's signed ranks over the logarithms, whose
    ends are averages of two ratios. None stands for an end that so few pairs do not tell."""
    logs = sorted(math.log(ratio) for ratio in ratios)
    averages = sorted((logs[i] + logs[j]) / 2 for i in range(len(logs)) for j in range(i, len(logs)))
    outside = cut(len(logs))
    median = statistics.median(ratios)
    if outside == 0:
        return median, None, None
    return median, math.exp(averages[outside - 1]), math.exp(averages[-outside])
