import type { ReadAccess } from "../../access/table-door.ts";
import { BoundedMap } from "../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../kernel/clock.ts";
import { LOG_AGE_MAX_MS, SEEN_VIEWS_MAX } from "../limits.ts";

/** One view of a channel, while a user listens through it and for as long afterwards as the log reaches. */
interface Seen {
  /** The number from which on somebody has listened through it. */
  from: number;
  /** The last number that can have been sent through it, once nobody listens any more. */
  until: number;
  endedAt: Millis;
  holders: number;
}

interface SeenChannel {
  views: Map<string, Seen>;
  /** Up to here the user listened through views that are forgotten. */
  forgottenUntil: number;
}

/**
 * Which views users have lately seen their channels through. Who comes back with the number of the last change holds what
 * the view of that time showed: under another one, the changes that followed do not make it true.
 */
export interface SeenViews {
  /** Whether who holds what was sent up to `since` holds what `view` showed then. */
  covers(view: SeenView, access: ReadAccess, since: number): boolean;
  begin(view: SeenView, from: number): void;
  end(view: SeenView, until: number): void;
}

/** A user's view of one channel; `key` is the same for what shows the same. */
export interface SeenView {
  userId: string;
  channel: string;
  key: string;
}

export function createSeenViews(clock: Clock): SeenViews {
  const channels = new BoundedMap<string, SeenChannel>(SEEN_VIEWS_MAX);
  const nameOf = ({ userId, channel }: SeenView): string => JSON.stringify([userId, channel]);
  // Filters may be long, and are compared only.
  const digest = (key: string): string => new Bun.CryptoHasher("sha256").update(key).digest("base64");

  const forgetOld = (seen: SeenChannel): void => {
    for (const [key, { holders, endedAt, until }] of seen.views) {
      if (holders > 0 || endedAt >= clock.now() - LOG_AGE_MAX_MS) continue;
      seen.views.delete(key);
      seen.forgottenUntil = Math.max(seen.forgottenUntil, until);
    }
  };

  return {
    covers(view, access, since) {
      const seen = channels.get(nameOf(view));
      const isSelective = access.kind !== "all";
      if (seen === undefined) return !isSelective;
      forgetOld(seen);
      const own = digest(view.key);
      for (const [key, other] of seen.views) {
        if (key !== own && (other.holders > 0 || other.until >= since)) return false;
      }
      const known = seen.views.get(own);
      if (known === undefined) return !isSelective && seen.forgottenUntil < since;
      return known.from <= since && seen.forgottenUntil < since;
    },
    begin(view, from) {
      const name = nameOf(view);
      const seen = channels.get(name) ?? { views: new Map<string, Seen>(), forgottenUntil: -1 };
      channels.set(name, seen);
      forgetOld(seen);
      const key = digest(view.key);
      const known = seen.views.get(key) ?? { from, until: from, endedAt: 0, holders: 0 };
      known.from = Math.min(known.from, from);
      known.holders++;
      seen.views.set(key, known);
    },
    end(view, until) {
      const seen = channels.peek(nameOf(view))?.views.get(digest(view.key));
      if (seen === undefined) return;
      seen.holders--;
      seen.until = Math.max(seen.until, until);
      seen.endedAt = clock.now();
    },
  };
}
