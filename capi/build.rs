//! Gives the shared object its soname: programs link against the major version, not against the
//! file of one build.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtributary.so.0");
}
