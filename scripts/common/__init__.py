"""Settings, addresses, console output and downloads that the other packages share."""
