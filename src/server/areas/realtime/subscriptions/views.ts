import { BoundedMap } from "../../../../kernel/bounded-map.ts";
import { authOf } from "../../../access/principal.ts";
import type { ReadAccess } from "../../../access/table-door.ts";
import type { Visiting } from "../../../sockets/connection.ts";
import { VIEWS_MAX } from "../limits.ts";

/** The records that a channel shows to a user. */
export interface View {
  /** Channel, and the rule's view of the user. */
  readonly place: string;
  /** Key that is equal for views of a place that show the same records. */
  readonly key: string;
}

/**
 * Returns the view of a channel; null when its read rule is a constant of the config, which shows the same records to everybody.
 */
export function viewOf(principal: Visiting, channel: string, access: ReadAccess): View | null {
  if (access.kind === "all" && access.saidBy === "config") return null;
  const place = JSON.stringify([channel, authOf(principal)]);
  return { place: digest(place), key: access.kind === "filter" ? digest(access.filter.key) : access.kind };
}

/** Shortens texts that are only compared. */
const digest = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("base64");

/**
 * Remembers from which change on each place has had its current view only. A client that reconnects with `since` has the records
 * of its view at that time: under another view, the changes that followed do not bring them up to date. [RT39]
 */
export class Views {
  readonly #places = new BoundedMap<string, { readonly key: string; from: number }>(VIEWS_MAX);

  /** Whether a client with every event up to `since` has the records that `view` showed then. */
  covers({ place, key }: View, since: number): boolean {
    const known = this.#places.get(place);
    return known?.key === key && known.from <= since;
  }

  /** Begins a subscription with this view, which receives the changes after `position`. */
  begin({ place, key }: View, position: number): void {
    const known = this.#places.get(place);
    if (known === undefined) this.#places.set(place, { key, from: position });
    // The place had another view up to this change.
    else if (known.key !== key) this.#places.set(place, { key, from: position + 1 });
  }

  /** Ends a subscription with this view at the change `head`. `isDoubtful`: its client may have records of another view. */
  end({ place, key }: View, head: number, { isDoubtful }: { isDoubtful: boolean }): void {
    const known = this.#places.peek(place);
    if (known !== undefined && (isDoubtful || known.key !== key)) known.from = head + 1;
  }
}
