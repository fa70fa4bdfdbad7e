import { useCallback, useMemo, useState } from 'react';

type Selection = {
  selected: ReadonlySet<string>;
  /** The range that Shift extends, and the selection before it; null without a range. */
  range: Range | null;
};

type Range = { base: ReadonlySet<string>; anchor: string; end: string; isAdding: boolean };

const nothing: Selection = { selected: new Set(), range: null };

/** A selection in an ordered list. Ids that leave the list leave the selection. */
export function useSelection(ids: string[]) {
  const [selection, setSelection] = useState(nothing);
  const selected = useMemo(
    () => new Set(ids.filter((id) => selection.selected.has(id))),
    [ids, selection.selected],
  );

  /** Changes one item; as a range, everything from the item that was changed before. */
  const toggle = useCallback(
    (id: string, isRange: boolean) =>
      setSelection(({ selected, range }) =>
        isRange && range && ids.includes(range.anchor)
          ? apply({ ...range, end: id }, ids)
          : apply({ base: selected, anchor: id, end: id, isAdding: !selected.has(id) }, ids),
      ),
    [ids],
  );

  /** Extends the range that ends at `from`, or selects a new one from there. */
  const extend = useCallback(
    (from: string, to: string) =>
      setSelection(({ selected, range }) =>
        range?.end === from
          ? apply({ ...range, end: to }, ids)
          : apply({ base: selected, anchor: from, end: to, isAdding: true }, ids),
      ),
    [ids],
  );

  const select = useCallback((all: string[]) => setSelection({ selected: new Set(all), range: null }), []);
  const clear = useCallback(() => setSelection(nothing), []);

  return { selected, toggle, extend, select, clear };
}

function apply(range: Range, ids: string[]): Selection {
  const [from = 0, to = 0] = [ids.indexOf(range.anchor), ids.indexOf(range.end)].toSorted((a, b) => a - b);
  const selected = new Set(range.base);
  for (const id of ids.slice(from, to + 1)) {
    if (range.isAdding) selected.add(id);
    else selected.delete(id);
  }
  return { selected, range };
}
