"""Finds the cycles of a directed graph."""


def cycles(edges):
    """Returns the groups of nodes that reach each other, each sorted. `edges` maps a node to the nodes it points to."""
    # Tarjan's algorithm, without recursion, because chains of dependencies can be long.
    index, low, on_path, path, found = {}, {}, set(), [], []
    for root in sorted(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = path.index(node)
                    group, path[at:] = path[at:], []
                    on_path.difference_update(group)
                    if len(group) > 1:
                        found.append(sorted(group))
            elif target not in index:
                index[target] = low[target] = len(index)
                path.append(target)
                on_path.add(target)
                work.append((target, iter(sorted(edges.get(target, ())))))
            elif target in on_path:
                low[node] = min(low[node], index[target])
    return sorted(found)
