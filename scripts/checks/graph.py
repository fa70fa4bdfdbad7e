"""Finds a cycle of a directed graph."""

import graphlib


def cycle(arrows):
    """Returns the arrows of one cycle, each a pair of nodes; none if there is no cycle."""
    sorter = graphlib.TopologicalSorter()
    for source, target in arrows:
        sorter.add(source, target)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        # Against the direction of the arrows; the last node is the first one again.
        nodes = error.args[1]
        return set(zip(nodes[1:], nodes))
    return set()
