import type { JsonObject } from "../../kernel/json/json.ts";
import type { Runtime } from "../runtime.ts";
import type { LiveQuery } from "./types.ts";
import type { View } from "./view.ts";

/** A live query ends this long after its last listener. */
const IDLE_END_MS = 5_000;

interface Held {
  view: View;
  release: () => void;
}

export interface Holding {
  /** What a new view goes on from. */
  before: View | null;
  /** Ends it when the client is closed. */
  end: () => void;
}

interface HandleParts {
  runtime: Runtime;
  /** The view of the query. */
  hold(holding: Holding): Held;
  /** A view that nobody holds, and that shows nothing. */
  blank(): View;
  userCount(): number;
}

/** One `live()`. Equal queries have the same view. */
export function openHandle({ runtime, hold, blank, userCount }: HandleParts): LiveQuery<JsonObject> {
  /** Each ends one listener. */
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
  /** When it was held last. */
  let seenBy = userCount();
  const endLater = () => {
    cancelEnd();
    cancelEnd = runtime.after(IDLE_END_MS, end);
  };
  const begin = () => {
    held = hold({ before: seenBy === userCount() ? view : null, end });
    view = held.view;
  };
  /** What an ended query has shown to one user is not shown to the next. */
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
