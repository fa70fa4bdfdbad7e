// Marks and overrides of the writing direction, and characters without a width: they could make a text look like another.
const INVISIBLE = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/**
 * A text from a foreign file, without what could deceive: it keeps its own writing direction, breaks anywhere, and its
 * invisible characters are left out.
 */
export function ForeignText({ text }: { text: string }) {
  return (
    <bdi className="[overflow-wrap:anywhere]" translate="no">
      {text.replace(INVISIBLE, '')}
    </bdi>
  );
}
