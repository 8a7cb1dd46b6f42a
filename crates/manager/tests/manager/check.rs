//! A look at what a manager would start with.

use crate::common::{Fabric, TWO_LEAVES};
use trib_manager::{Error, Options, check};

#[test]
fn a_check_beside_a_manager_that_runs_tells_what_another_start_would() {
    let fabric = Fabric::with_tenants(TWO_LEAVES, "[node]\nstreams = 8\n", &[]);
    let options = fabric.options();
    let checked = check(&options).unwrap();
    assert_eq!((checked.fabric.as_str(), checked.nodes, checked.tenants, checked.withdrawn), ("test", 3, Some(0), 0));

    let file = options.tenants.clone().unwrap();
    std::fs::write(&file, "[node]\nstreams = 8\nstream = 8\n").unwrap();
    let error = check(&options).unwrap_err();
    assert!(matches!(&error, Error::Tenants(fault) if fault.line == Some(3)), "{error}");
    let nowhere = Options { credentials: file, tenants: None, ..options };
    assert!(matches!(check(&nowhere).unwrap_err(), Error::Control(_)));
}
