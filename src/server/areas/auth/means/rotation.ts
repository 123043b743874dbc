import type { Millis } from "../../../../kernel/clock.ts";
import { REFRESH_GRACE_MS, REFRESH_ROTATIONS_KEPT } from "../limits.ts";
import type { SessionRow } from "../statements/sessions.ts";

type Rotation =
  /** The present token: a new generation begins. */
  | { kind: "rotated"; generation: number; rotations: Millis[] }
  /** Replaced within the grace, by another tab for instance: the present token is given again. */
  | { kind: "grace"; generation: number; rotations: Millis[] }
  /** An old token: it has been copied, and the session ends. */
  | { kind: "reused" };

type Generations = Pick<SessionRow, "generation" | "rotations">;

/** The session with a new refresh token; the grace of the present one begins now. */
function nextGeneration(session: Generations, now: Millis): Generations {
  const rotations = [now, ...session.rotations.filter((replacedAt) => now - replacedAt <= REFRESH_GRACE_MS)];
  return { generation: session.generation + 1, rotations: rotations.slice(0, REFRESH_ROTATIONS_KEPT) };
}

/**
 * What a refresh token of this generation does to its session. A future generation (the data is an older copy than
 * the token) counts as reused. [AU7]
 */
export function rotate(session: Generations, generation: number, now: Millis): Rotation {
  if (generation === session.generation) return { kind: "rotated", ...nextGeneration(session, now) };
  const recent = session.rotations.filter((replacedAt) => now - replacedAt <= REFRESH_GRACE_MS);
  // rotations[0] says when the generation just before the present one was replaced.
  const age = session.generation - generation;
  if (age > 0 && age <= recent.length) return { kind: "grace", generation: session.generation, rotations: recent };
  return { kind: "reused" };
}
