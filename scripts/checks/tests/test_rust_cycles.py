import re
import tempfile
import unittest
from pathlib import Path

from checks import rust_cycles
from common.console import Problem

LIB = "mod a;\nmod b;\n"


class RustCyclesTest(unittest.TestCase):
    def write(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = Path(folder.name).resolve() / "src"
        for name, code in files.items():
            path = source / f"{name}.rs"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        return source

    def root(self, **files):
        """Writes a crate: code by the names of its files, `/` written as `__`."""
        return self.write({name.replace("__", "/"): code for name, code in files.items()}) / "lib.rs"

    def uses(self, **files):
        return {(use.source.stem, use.item, use.target.stem) for use in rust_cycles.uses_of(self.root(**files))}

    def assert_cycle(self, *names, **files):
        found = rust_cycles.cycle_of(self.root(**files))
        self.assertEqual(sorted(re.findall(r"/src/(\S+)\.rs(?=,|$)", found.partition("\n")[0])), sorted(names))

    def test_files_that_import_each_other_are_a_cycle(self):
        self.assert_cycle("a", "b", lib=LIB, a="use crate::b::B;\npub struct A;\n", b="pub struct B;\nfn f(_: crate::a::A) {}\n")

    def test_files_that_import_one_way_are_not(self):
        self.assert_cycle(lib=LIB, a="use crate::b::B;\npub struct A;\n", b="pub struct B;\n")

    def test_a_cycle_of_three_is_found(self):
        a, b, c = (f"use super::{other}::X{other};\npub struct X{own};\n" for own, other in ("ab", "bc", "ca"))
        self.assert_cycle("a", "b", "c", lib=LIB + "mod c;\n", a=a, b=b, c=c)

    def test_the_finding_names_both_lines(self):
        source = self.write(
            {"lib": LIB, "a": "\nuse crate::b::{self, B};\npub struct A;\n", "b": "pub struct B;\n\n\nfn f() -> super::a::A { todo!() }\n"}
        )
        [finding] = rust_cycles.check([source.parent])
        self.assertIn(f"{source}/a.rs:2: crate::b::B (in {source}/b.rs)", finding)
        self.assertIn(f"{source}/b.rs:4: super::a::A (in {source}/a.rs)", finding)

    def test_a_parent_that_declares_and_re_exports_a_child_does_not_use_it(self):
        child = "use super::Parent;\npub struct Child(Parent);\n"
        self.assert_cycle(lib="mod a;", a="mod c;\npub use c::Child;\npub struct Parent;\n", a__c=child)
        self.assert_cycle(lib="mod a;", a="mod c;\npub(crate) use self::c::*;\npub struct Parent;\n", a__c=child)

    def test_a_parent_that_uses_what_it_re_exports_does(self):
        child = "use super::Parent;\npub struct Child(Parent);\n"
        parent = "mod c;\npub use c::Child;\npub struct Parent;\nfn f(_: Child) {}\n"
        self.assert_cycle("a", "a/c", lib="mod a;", a=parent, a__c=child)

    def test_a_parent_that_calls_a_child_which_uses_the_parent_is_a_cycle(self):
        parent = "mod c;\npub struct Parent;\nfn f() { c::run() }\n"
        self.assert_cycle("a", "a/c", lib="mod a;", a=parent, a__c="pub fn run(_: &super::Parent) {}\n")
        self.assert_cycle(lib="mod a;", a=parent, a__c="pub fn run() {}\n")

    def test_a_name_counts_for_the_file_that_defines_it(self):
        files = {"lib": "mod a;", "a": "mod c;\nmod d;\nuse d::Helper;\nfn f(_: Helper) { c::run() }\n", "a__d": "pub struct Helper;\n"}
        # `super::Helper` leads through the import of the parent to d.rs.
        found = self.uses(**files, a__c="use super::Helper;\npub fn run(_: Option<Helper>) {}\n")
        self.assertEqual(found, {("a", "Helper", "d"), ("a", "run", "c"), ("c", "Helper", "d")})

    def test_re_exports_lead_through_several_files_and_other_names(self):
        files = {
            "lib": "pub mod api;\nmod user;\n",
            "api": "mod inner;\npub use inner::Thing as Other;\npub use self::inner::deep::*;\n",
            "api__inner": "pub mod deep;\npub struct Thing;\n",
            "api__inner__deep": "pub fn dig() {}\n",
            "user": "use crate::api::{dig, Other};\nfn f(_: Other) { dig() }\n",
        }
        self.assertEqual(self.uses(**files), {("user", "Thing", "inner"), ("user", "dig", "deep")})

    def test_names_of_a_glob_import_count_when_they_are_used(self):
        found = self.uses(lib=LIB, a="use crate::b::*;\nfn f() { used(1) }\n", b="pub fn used(_: u8) {}\npub fn unused() {}\n")
        self.assertEqual(found, {("a", "used", "b")})

    def test_an_imported_module_counts_by_what_is_named_in_it(self):
        found = self.uses(
            lib=LIB, a="use crate::b;\nuse crate::b as other;\nfn f() { b::one(); other::two::<u8>() }\n", b="pub fn one() {}\npub fn two<T>() {}\n"
        )
        self.assertEqual(found, {("a", "one", "b"), ("a", "two", "b")})

    def test_inline_modules_belong_to_their_file(self):
        code = "mod inner {\n    use super::Own;\n    pub fn f(_: super::super::b::B) {}\n}\nstruct Own;\n"
        self.assertEqual(self.uses(lib=LIB, a=code, b="pub struct B;\nfn f() { crate::a::inner::f(B) }\n"), {("a", "B", "b"), ("b", "inner", "a")})

    def test_comments_strings_and_tests_are_not_code(self):
        code = """\
// crate::b::B
const TEXT: &str = "crate::b::B \\" crate::b::B";
const RAW: &str = r#"crate::b::B " crate::b::B"#;
const QUOTE: char = '"';
const ESCAPED: char = '\\'';
fn with_lifetime<'a>(x: &'a str) -> &'a str { x }
#[cfg(test)]
use crate::b::B;
#[cfg(test)]
#[derive(Debug)]
struct OnlyTests {
    b: crate::b::B,
}
#[cfg(test)]
mod tests {
    use crate::b::B;
    fn f() {
        if true { B; }
    }
}
struct Partly {
    #[cfg(test)]
    b: crate::b::B,
    rest: u8,
}
impl Partly {
    #[cfg(test)]
    fn f() {
        crate::b::B
    }
}
fn seen() { crate::b::seen() }
"""
        self.assertEqual(self.uses(lib=LIB, a=code, b="pub struct B;\npub fn seen() {}\n"), {("a", "seen", "b")})

    def test_code_of_other_configurations_counts(self):
        found = self.uses(
            lib=LIB, a="#[cfg(not(test))]\nuse crate::b::B;\n#[cfg(unix)]\nfn f() { crate::b::g() }\n", b="pub struct B;\npub fn g() {}\n"
        )
        self.assertEqual(found, {("a", "B", "b"), ("a", "g", "b")})

    def test_fields_methods_and_other_crates_are_not_uses(self):
        code = "use std::b::B;\nuse ::b::B as Two;\nuse b::B as Three;\nfn f(x: B) { x.run(); x.field; b::run() }\n"
        self.assertEqual(self.uses(lib="mod a;\nmod c;\n", a=code, c="pub fn run() {}\npub mod field {}\n"), set())

    def test_an_import_under_the_name_of_its_crate_ends(self):
        self.assertEqual(self.uses(lib="mod a;", a="use image::image;\nuse self::x::*;\nuse y::*;\nfn f() { image::open() }\n"), set())

    def test_paths_in_attributes_are_uses(self):
        found = self.uses(lib=LIB, a="struct Args {\n    #[arg(value_parser = crate::b::parse)]\n    x: u8,\n}\n", b="pub fn parse() {}\n")
        self.assertEqual(found, {("a", "parse", "b")})

    def test_a_block_comment_is_refused(self):
        with self.assertRaisesRegex(Problem, "a.rs: write comments with //"):
            self.uses(lib=LIB, a="/* crate::b::B */\n", b="")

    def test_every_kind_of_item_is_known(self):
        items = {
            "F": "pub const unsafe fn F() {}",
            "S": "pub struct S<T>(T);",
            "E": "pub enum E { X }",
            "U": "pub union U { x: u8 }",
            "T": "pub unsafe trait T {}",
            "A": "pub type A = u8;",
            "C": "pub const C: u8 = 1;",
            "M": "pub static mut M: u8 = 1;",
            "G": 'pub extern "C" fn G() {}',
        }
        # Without the item, the name is a local one.
        uses = "use crate::b::*;\nfn f() { let _ = (F, S, E::X, U, T, A, C, M, G, Unknown); }\n"
        found = self.uses(lib=LIB, a=uses, b="\n".join(items.values()) + "\nimpl E { pub fn Unknown() {} }\n")
        self.assertEqual(found, {("a", name, "b") for name in items})


if __name__ == "__main__":
    unittest.main()
