"""Tools for operators: backup, restore, models. Independent of `devstack` and `checks`."""
