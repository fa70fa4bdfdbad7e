"""Tools for operators: backup, restore, capacity planning, models. Independent of `devstack` and `checks`."""
