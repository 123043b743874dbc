import { textOf } from "../base64url.ts";
import { REFRESH_MARGIN_MS } from "../limits.ts";
import type { Tokens } from "./types.ts";

/**
 * A session as the store has it. Its times are by this machine's clock, which may be wrong: they follow from when the tokens
 * arrived and from how long they are valid, never from the times in them.
 */
export interface StoredSession extends Tokens {
  /** When the tokens arrived. */
  takenAt: number;
  /** How long the access token was valid then, in milliseconds. */
  lifetimeMs: number;
}

/** The lifetime that an access token says; 0 for one that cannot be read, which is then refreshed at each use. */
function lifetimeMsOf(accessToken: string): number {
  try {
    const payload = accessToken.split(".")[1] ?? "";
    const { exp, iat } = JSON.parse(textOf(payload));
    return (exp - iat) * 1000 || 0;
  } catch {
    return 0;
  }
}

export const stored = ({ user, accessToken, refreshToken }: Tokens, now: number): StoredSession => ({
  user,
  accessToken,
  refreshToken,
  takenAt: now,
  lifetimeMs: lifetimeMsOf(accessToken),
});

/** null for a text that is not a session. */
export function parseStored(text: string | null): StoredSession | null {
  try {
    const session = JSON.parse(text ?? "null");
    return typeof session?.refreshToken === "string" ? session : null;
  } catch {
    return null;
  }
}

/** Milliseconds for which the access token is still valid; none if the clock was set back behind its arrival. */
const leftMs = ({ takenAt, lifetimeMs }: StoredSession, now: number): number =>
  now < takenAt ? 0 : takenAt + lifetimeMs - now;

export const isValid = (session: StoredSession, now: number): boolean => leftMs(session, now) > 0;

/** Whether it is time for the next access token. */
export const isDue = (session: StoredSession, now: number): boolean =>
  leftMs(session, now) <= Math.min(REFRESH_MARGIN_MS, session.lifetimeMs / 5);
