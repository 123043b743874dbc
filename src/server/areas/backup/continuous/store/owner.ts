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

/** Thrown when the place takes writes whose condition is not met. */
export class WeakStore extends BackupError {}

/**
 * Makes this process the one that stores here. `isFirst`: the server has not stored here before; otherwise another server that has
 * begun since keeps the place. Resolves to the incarnation that stored here before; "": none. Errors: ForeignPlace, Displaced, WeakStore,
 * those of the store.
 */
export async function claimPlace(
  store: Store,
  { owner, incarnation, server }: Claim,
  { takeOver, isFirst, clock }: { takeOver: boolean; isFirst: boolean; clock: Clock },
): Promise<{ wasAnothers: boolean; former: string }> {
  const version = await store.readTagged(MARKER);
  const text = version?.text ?? null;
  const present = parseMarker(text);
  if (present !== null && present.owner !== owner.id && !takeOver) {
    throw new ForeignPlace(
      `${store.name} belongs to ${describeOwner(present)}: give each server a place of its own. To take it over, when the other server is no longer used, start once with --take-over.`,
    );
  }
  const claimed = claimedOf(text);
  if (!isFirst && claimed.server !== server) throw displaced(store);
  if (isFirst) await requireConditions(store, incarnation);
  const marker = { ...parseMarker(markerText(owner, clock)), incarnation, server };
  const isStored = await store.putIf(MARKER, bytesOf(`${JSON.stringify(marker)}\n`), version?.tag ?? null);
  // An answer may have been lost, so that the repetition was refused. Of two that claim it at the same time, one has it.
  if (!isStored) await requireClaim(store, incarnation);
  return { wasAnothers: present !== null && present.owner !== owner.id, former: claimed.incarnation };
}

/** Checks that this process still stores here. Errors: Displaced. */
export async function requireClaim(store: Store, incarnation: string): Promise<void> {
  const version = await store.readTagged(MARKER);
  if (claimedOf(version?.text ?? null).incarnation === incarnation) return;
  // So that the later server can say it too.
  await store.putIf(displacedKey(incarnation), bytesOf("{}\n"), null).catch(() => {});
  throw displaced(store);
}

/** Whether the process of this incarnation has noticed that another one has begun later. */
export const isDisplaced = async (store: Store, incarnation: string): Promise<boolean> =>
  (await store.readTagged(displacedKey(incarnation))) !== null;

const displacedKey = (incarnation: string): string => `displaced/${incarnation}`;

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text));

/** Errors: WeakStore if the store replaces an object although the condition says not to. */
async function requireConditions(store: Store, incarnation: string): Promise<void> {
  const key = `probes/${incarnation}`;
  const bytes = bytesOf("{}\n");
  await store.putIf(key, bytes, null);
  const isReplaced = (await store.putIf(key, bytes, null)) || (await store.putIf(key, bytes, '"another"'));
  await store.remove(key);
  if (!isReplaced) return;
  throw new WeakStore(
    `${store.name} ignores the conditions of writes (If-Match, If-None-Match), so that two servers could overwrite one another's objects: continuous backup needs a store that keeps them`,
  );
}

const displaced = ({ name }: Store): Displaced =>
  new Displaced(
    `${name} is used by another server that has begun later, with a copy of this data directory: this one stores nothing there any more`,
  );
