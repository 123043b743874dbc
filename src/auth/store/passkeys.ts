import type { Millis } from "../../kernel/clock.ts";
import type { Sql } from "./sql.ts";

export interface Passkey {
  /** The credential id, base64url. */
  id: string;
  userId: string;
  publicKey: Uint8Array<ArrayBuffer>;
  /** Signatures made, as the authenticator counts; 0 for those that do not. */
  counter: number;
  transports: string[];
  deviceType: string;
  backedUp: boolean;
  name: string | null;
  createdAt: Millis;
  lastUsedAt: Millis | null;
}

type PasskeyRow = Omit<Passkey, "transports" | "backedUp"> & { transports: string; backedUp: number };

const toPasskey = (row: PasskeyRow): Passkey => ({
  ...row,
  backedUp: row.backedUp === 1,
  // What the store wrote itself is an array of strings.
  transports: JSON.parse(row.transports) as string[],
});

export function passkeyById(sql: Sql, id: string): Passkey | null {
  const row = sql.query<PasskeyRow>("SELECT * FROM passkeys WHERE id = ?").get(id);
  return row === null ? null : toPasskey(row);
}

export function passkeysOfUser(sql: Sql, userId: string): Passkey[] {
  return sql
    .query<PasskeyRow>("SELECT * FROM passkeys WHERE userId = ? ORDER BY createdAt, id")
    .all(userId)
    .map(toPasskey);
}

export function insertPasskey(sql: Sql, passkey: Omit<Passkey, "lastUsedAt">): void {
  sql
    .query(
      `INSERT INTO passkeys (id, userId, publicKey, counter, transports, deviceType, backedUp, name, createdAt)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      passkey.id,
      passkey.userId,
      passkey.publicKey,
      passkey.counter,
      JSON.stringify(passkey.transports),
      passkey.deviceType,
      passkey.backedUp,
      passkey.name,
      passkey.createdAt,
    );
}

export function usePasskey(sql: Sql, id: string, counter: number, backedUp: boolean, now: Millis): void {
  sql
    .query("UPDATE passkeys SET counter = ?, backedUp = ?, lastUsedAt = ? WHERE id = ?")
    .run(counter, backedUp, now, id);
}

export function deletePasskeysOfUser(sql: Sql, userId: string): void {
  sql.query("DELETE FROM passkeys WHERE userId = ?").run(userId);
}

export function deletePasskey(sql: Sql, userId: string, id: string): boolean {
  return sql.query("DELETE FROM passkeys WHERE userId = ? AND id = ?").run(userId, id).changes > 0;
}
