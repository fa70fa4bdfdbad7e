//! Rebuilds the crate if a migration changes: they are embedded, and Cargo would not notice a new file.

fn main() {
    println!("cargo::rerun-if-changed=../migrations");
}
