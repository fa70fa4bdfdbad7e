"""Serves operators: backup, restore, capacity planning and models. Runs without `devstack` and `checks`."""
