import type { Clock } from "../../../../../kernel/clock.ts";
import { isJsonObject } from "../../../../../kernel/json/json.ts";
import { describeOwner, markerText, type Owner, parseMarker } from "../../../../disk/owner-marker.ts";
import { MARKER } from "../../destination/destinations.ts";
import { BackupError } from "../../types.ts";
import type { Store } from "./store.ts";

/** Thrown when the place belongs to another data directory. */
export class ForeignPlace extends BackupError {}

/** Thrown when another server of this data directory's id has begun later: a copied directory. */
export class Displaced extends BackupError {}

interface Claim {
  owner: Owner;
  /** Random for each start of the process that stores. */
  incarnation: string;
  /** Random for each start of the server. */
  server: string;
}

/** The marker with the incarnation that stores now. */
interface Claimed {
  server: string;
  incarnation: string;
}

function claimedOf(text: string | null): Claimed {
  const none = { server: "", incarnation: "" };
  try {
    const value: unknown = JSON.parse(text ?? "null");
    if (!isJsonObject(value)) return none;
    const member = (name: keyof Claimed): string => (typeof value[name] === "string" ? value[name] : "");
    return { server: member("server"), incarnation: member("incarnation") };
  } catch {
    return none;
  }
}

const readMarker = async (store: Store): Promise<string | null> => {
  const bytes = await store.read(MARKER);
  return bytes === null ? null : new TextDecoder().decode(bytes);
};

/**
 * Makes this process the one that stores here. `isFirst`: the server has not stored here before; otherwise another server that has
 * begun since keeps the place. Errors: ForeignPlace, Displaced, those of the store.
 */
export async function claimPlace(
  store: Store,
  { owner, incarnation, server }: Claim,
  { takeOver, isFirst, clock }: { takeOver: boolean; isFirst: boolean; clock: Clock },
): Promise<{ wasAnothers: boolean }> {
  const text = await readMarker(store);
  const present = parseMarker(text);
  if (present !== null && present.owner !== owner.id && !takeOver) {
    throw new ForeignPlace(
      `${store.name} belongs to ${describeOwner(present)}: give each server a place of its own. To take it over, when the other server is no longer used, start once with --take-over.`,
    );
  }
  const claimed = claimedOf(text);
  if (!isFirst && claimed.server !== server) throw displaced(store);
  const marker = { ...parseMarker(markerText(owner, clock)), incarnation, server };
  await store.put(MARKER, new Uint8Array(Buffer.from(`${JSON.stringify(marker)}\n`)));
  // Of two that claim it at the same time, the later one has it.
  await requireClaim(store, incarnation);
  return { wasAnothers: present !== null && present.owner !== owner.id };
}

/** Checks that this process still stores here. Errors: Displaced. */
export async function requireClaim(store: Store, incarnation: string): Promise<void> {
  if (claimedOf(await readMarker(store)).incarnation !== incarnation) throw displaced(store);
}

const displaced = ({ name }: Store): Displaced =>
  new Displaced(
    `${name} is used by another server that has begun later, with a copy of this data directory: this one stores nothing there any more`,
  );
