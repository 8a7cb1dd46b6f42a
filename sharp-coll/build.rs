//! Gives the shared object the name by which clients look for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsharp_coll.so.5");
}
