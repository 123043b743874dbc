import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import type { Clock, Millis } from "../../../../kernel/clock.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import { LOG_AGE_MAX_MS, SEEN_VIEWS_MAX, SEEN_VIEWS_PER_CHANNEL_MAX } from "../limits.ts";

/** One view of a channel, while a user has subscriptions with it, and for as long afterwards as the log reaches. */
interface Seen {
  /** The number of the first change that it was used for. */
  from: number;
  /** The number of the last change that it can have been used for, once its subscriptions have ended. */
  until: number;
  endedAt: Millis;
  holders: number;
}

interface SeenChannel {
  views: Map<string, Seen>;
  /** Views that are forgotten were used up to this number. */
  forgottenUntil: number;
}

/**
 * The views that users have had of their channels recently. A client that reconnects with `since` has the records that its
 * view of that time showed: under another view, the changes that followed do not bring them up to date. [RT39]
 */
export interface SeenViews {
  /** Whether a client that has every event up to `since` has the records that `view` showed then. */
  covers(view: SeenView, access: ReadAccess, since: number): boolean;
  begin(view: SeenView, from: number): void;
  end(view: SeenView, until: number): void;
  /** What it showed up to now is not known: it covers nothing that was seen before the next `begin`. */
  forget(view: SeenView): void;
}

/** A user's view of one channel. `key` is equal for views that show the same records. */
export interface SeenView {
  userId: string;
  channel: string;
  key: string;
}

export function createSeenViews(clock: Clock): SeenViews {
  const channels = new BoundedMap<string, SeenChannel>(SEEN_VIEWS_MAX);
  const nameOf = ({ userId, channel }: SeenView): string => JSON.stringify([userId, channel]);
  // Keys may be long, and are only compared.
  const digest = (key: string): string => new Bun.CryptoHasher("sha256").update(key).digest("base64");

  /** Those that have ended before the log begins, and the oldest of too many: a rule may show another view with each commit. */
  const forgetOld = (seen: SeenChannel): void => {
    let surplus = seen.views.size - SEEN_VIEWS_PER_CHANNEL_MAX;
    for (const [key, { holders, endedAt, until }] of seen.views) {
      if (holders > 0 || (surplus <= 0 && endedAt >= clock.now() - LOG_AGE_MAX_MS)) continue;
      surplus--;
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
    forget(view) {
      const seen = channels.peek(nameOf(view))?.views.get(digest(view.key));
      if (seen !== undefined) seen.from = Number.POSITIVE_INFINITY;
    },
  };
}
