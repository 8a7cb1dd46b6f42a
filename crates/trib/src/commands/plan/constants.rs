//! Which constants hold, and what people are told about them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use trib_topology::predict::{CONSTANTS, Constants, ConstantsError};

use crate::failure::Failure;

/// The constants of `file`, else of the first file that exists at a usual path, else the defaults;
/// then those given by hand replace some of them.
pub(super) fn find(file: Option<&Path>, by_hand: &[String]) -> Result<Constants, Failure> {
    let load = |path: &Path| Constants::load(path).map_err(|error| failure(&error));
    let mut constants = match (file, usual().into_iter().find(|path| path.exists())) {
        (Some(path), _) => load(path)?,
        (None, Some(path)) => load(&path)?,
        (None, None) => Constants::server(),
    };
    constants.replace(by_hand).map_err(|error| Failure::Usage(format!("--constant: {error}")))?;
    Ok(constants)
}

/// The usual paths of constants: the user's before the machine's.
fn usual() -> Vec<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let own = own.map(|folder| folder.join("tributary").join("constants.toml"));
    own.into_iter().chain([PathBuf::from(trib_manager::CONSTANTS_FILE)]).collect()
}

fn failure(error: &ConstantsError) -> Failure {
    match error {
        ConstantsError::Unreadable(..) => Failure::Environment(error.to_string()),
        _ => Failure::Operation(error.to_string()),
    }
}

/// The constants as they are printed below a plan.
pub(super) fn text(constants: &Constants) -> String {
    let mut text = format!("\nConstants: {constants}\n ");
    for constant in CONSTANTS {
        write!(text, " {} {},", constant.name, constant.get(&constants.model)).expect("writing to memory cannot fail");
    }
    text.pop();
    text + "\n"
}
