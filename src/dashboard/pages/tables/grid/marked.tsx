/** Around what a search has found: no text of a record has these characters by accident, as it may have tags. */
export const MARKS = { pre: "\ue000", post: "\ue001" } as const;

const SHOWN_CHARACTERS = 300;
/** Characters before the first match. */
const LEAD_CHARACTERS = 24;

/** A text with what a search has found in it, from shortly before the first match. */
export function Marked({ text }: { text: string }) {
  const first = text.indexOf(MARKS.pre);
  const from = first > LEAD_CHARACTERS * 2 ? first - LEAD_CHARACTERS : 0;
  const shown = text.slice(from, from + SHOWN_CHARACTERS);
  const parts = shown.split(MARKS.pre).map((part, index) => {
    const [found = "", rest] = part.split(MARKS.post);
    if (index === 0) return part;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text
      <span key={index}>
        <mark>{found}</mark>
        {rest}
      </span>
    );
  });
  return (
    <>
      {from > 0 ? "…" : null}
      {parts}
    </>
  );
}
