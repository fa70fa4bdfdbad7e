"""Settings, addresses, console output and pinned wheels: everything that the other rooms share."""
