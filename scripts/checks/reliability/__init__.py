"""Proves that outages, crashes and hostile jobs lose nothing, and that paid work flows again soon afterwards."""
