import type { JsonObject } from "../../kernel/json/json.ts";
import type { Runtime } from "../runtime.ts";
import type { LiveQuery } from "./types.ts";
import type { View } from "./view.ts";

/** Delay after the last listener before a live query ends. */
const IDLE_END_MS = 5_000;

interface Held {
  view: View;
  release: () => void;
}

export interface Holding {
  /** Previous view, from which a new one continues. */
  before: View | null;
  /** Ends the query when the client is closed. */
  end: () => void;
}

interface HandleParts {
  runtime: Runtime;
  /** Holds the view of the query. */
  hold(holding: Holding): Held;
  /** Returns an empty view that is not held. */
  blank(): View;
  userCount(): number;
}

/** Creates the handle of one `live()` call. Equal queries share a view. */
export function openHandle({ runtime, hold, blank, userCount }: HandleParts): LiveQuery<JsonObject> {
  /** Functions that remove one listener each. */
  const stops = new Set<() => void>();
  let cancelEnd: () => void = () => {};

  const end = () => {
    cancelEnd();
    for (const stop of stops) stop();
    stops.clear();
    if (held === null) return;
    held.release();
    held = null;
    seenBy = userCount();
  };
  let held: Held | null = hold({ before: null, end });
  let { view } = held;
  /** User count at the last hold. */
  let seenBy = userCount();
  const endLater = () => {
    cancelEnd();
    cancelEnd = runtime.after(IDLE_END_MS, end);
  };
  const begin = () => {
    held = hold({ before: seenBy === userCount() ? view : null, end });
    view = held.view;
  };
  /** Records shown to one user are not shown to the next, even after the query has ended. */
  const shown = () => {
    if (held === null && seenBy !== userCount()) {
      view = blank();
      seenBy = userCount();
    }
    return view;
  };
  endLater();
  return {
    get items() {
      return shown().items;
    },
    get status() {
      return shown().status;
    },
    get error() {
      return shown().error;
    },
    get hasMore() {
      return shown().hasMore;
    },
    get isPending() {
      return shown().isPending;
    },
    subscribe(listener) {
      if (held === null) begin();
      cancelEnd();
      const stop = view.subscribe(listener);
      stops.add(stop);
      return () => {
        stop();
        if (stops.delete(stop) && stops.size === 0) endLater();
      };
    },
    close: end,
  };
}
