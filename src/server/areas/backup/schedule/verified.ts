import type { Millis } from "../../../../kernel/clock.ts";
import { type Destination, VERIFIED_NOTE } from "./destinations.ts";

/** What is known about verified backups of a destination. */
export interface Verified {
  /** The last verification that held; null: none has. */
  at: Millis | null;
  /** When each backup last held, by its name. */
  byName: ReadonlyMap<string, Millis>;
}

/** A note that is missing, or that something else wrote, says nothing. Errors: those of the destination. */
export async function readVerified(destination: Destination): Promise<Verified> {
  return parseNote(await destination.readNote(VERIFIED_NOTE));
}

/** Errors: those of the destination. */
export async function noteVerified(destination: Destination, name: string, at: Millis): Promise<void> {
  const { byName } = await readVerified(destination);
  const present = new Set((await destination.backups()).map((backup) => backup.name));
  const kept = [...byName].filter(([one]) => present.has(one));
  const backups = Object.fromEntries([...kept, [name, at]]);
  await destination.writeNote(VERIFIED_NOTE, JSON.stringify({ name, at, backups }));
}

function parseNote(note: string | null): Verified {
  try {
    const { name, at, backups = { [String(name)]: at } } = JSON.parse(note ?? "{}");
    const times = Object.entries(backups).filter((entry): entry is [string, Millis] => Number.isSafeInteger(entry[1]));
    return { at: Number.isSafeInteger(at) ? at : null, byName: new Map(times) };
  } catch {
    return { at: null, byName: new Map() };
  }
}
