"""Checks this repository: tests, lints, generated files, manifests, proofs."""
