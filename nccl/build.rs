//! Gives the shared object the name by which NCCL looks for it, and keeps it loaded: NCCL closes a
//! plugin when its last communicator ends, and threads may still be on their way out of it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnccl-net-tributary.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
