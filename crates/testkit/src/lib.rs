//! Fixtures, generators and reference collectives shared by the tests
