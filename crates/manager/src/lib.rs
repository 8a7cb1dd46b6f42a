//! Aggregation manager: admits jobs, plans trees, hands out quota
