import { hashOnThread } from "../../../areas/auth/means/hashing.ts";
import type { Remarks } from "../remarks.ts";
import type { Account } from "./accounts.ts";

const SLOW_MS = 300;
const NANOSECONDS = 1_000_000;
/** The part of a hash that says what it costs. */
const COST =
  /^(?:\$2[aby]\$\d\d|\$argon2id?\$v=\d+\$[^$]+|\$(?:firebase-)?scrypt\$[^$]+|\$[56]\$(?:rounds=\d+)?|pbkdf2[_:]sha256[$:]\d+)/;

/** Measures the comparison of a password with a hash, in milliseconds. */
export async function timeOf(hash: string): Promise<number> {
  const before = Bun.nanoseconds();
  await hashOnThread({ kind: "check", argon2: null, password: "none of anybody", hash });
  return (Bun.nanoseconds() - before) / NANOSECONDS;
}

/** Counts the accounts whose first sign-in takes long, as their hashes cost more than this server's. One of each cost is tried. */
export async function tellSlowHashes(accounts: readonly Account[], remarks: Remarks, measure = timeOf): Promise<void> {
  const costs = new Map<string, { hash: string; count: number }>();
  for (const { passwordHash } of accounts) {
    const cost = typeof passwordHash === "string" ? COST.exec(passwordHash)?.[0] : undefined;
    if (cost === undefined || typeof passwordHash !== "string") continue;
    const known = costs.get(cost) ?? { hash: passwordHash, count: 0 };
    costs.set(cost, { ...known, count: known.count + 1 });
  }
  for (const [cost, { hash, count }] of costs) {
    const time = await measure(hash);
    if (time <= SLOW_MS) continue;
    const text = `${count} hashes (${cost}) take ${Math.round(time)} ms on this machine, until their users sign in for the first time`;
    remarks.look("accounts", text);
  }
}
