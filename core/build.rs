//! Makes cargo look at the migrations: they are embedded, and a new file alone would not be noticed.

fn main() {
    println!("cargo::rerun-if-changed=../migrations");
}
