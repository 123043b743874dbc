import { useCallback, useState } from "react";

type Selection = ReadonlySet<string>;

const NOTHING: Selection = new Set();

/** What is chosen in a list, until the list shows other things: nobody acts on what they do not see. `shown` says what it shows. */
export function useSelection(shown: string): [Selection, (chosen: Selection) => void] {
  const [selection, setSelection] = useState({ shown, chosen: NOTHING });
  const choose = useCallback((chosen: Selection) => setSelection({ shown, chosen }), [shown]);
  return [selection.shown === shown ? selection.chosen : NOTHING, choose];
}
