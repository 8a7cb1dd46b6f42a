//! Version 12: the functions of version 11, and more properties.

use super::properties::V12;
use super::v11::{CollNet, Net};

/// What NCCL looks for.
#[unsafe(export_name = "ncclNetPlugin_v12")]
pub static NET: Net<V12> = Net::table();

/// What NCCL looks for.
#[unsafe(export_name = "ncclCollNetPlugin_v12")]
pub static COLLNET: CollNet<V12> = CollNet::table();
