import { READ_BYTES } from "../protocol/limits.ts";
import type { Statement } from "../protocol/statements.ts";
import { CORE } from "./schema.ts";
import type { Parameter } from "./wire.ts";

/** SQL of one statement of the protocol, with its values. */
export interface StatementSql {
  sql: string;
  parameters: readonly Parameter[];
}

/** Settings that decide how durable a commit is, as this session has read them. */
const SETTINGS = "current_setting('synchronous_standby_names'), pg_conf_load_time()::text";
/** Read by itself behind a statement, in a transaction of its own: by then the session has read a reload that it was sent. */
export const SETTINGS_AFTER = `SELECT ${SETTINGS}`;
const NODES = "(SELECT coalesce(json_agg(n), '[]')::text FROM platform.nodes n)";

/** Every answer has these columns, then those of an entry of the log: done, group, nodes, names, loading time, position, … */
const answer = (done: string, group: string): string => `SELECT (${done})::text, ${group}::text, ${NODES}, ${SETTINGS}`;
const GROUP = "(SELECT row_to_json(g) FROM platform.groups g WHERE g.name = $1)";
const NO_ENTRY = ", NULL, NULL, NULL, NULL, NULL, NULL, NULL";

const entries = (condition: string): string => `SELECT 'true', row_to_json(g)::text, ${NODES}, ${SETTINGS},
  l.position::text, l.file, l.number::text, l.epoch::text, l.nonce, l.previous, encode(l.content, 'base64')
  FROM platform.groups g LEFT JOIN platform.log l ON l.group_name = g.name AND ${condition}
  WHERE g.name = $1 ORDER BY l.position, l.file, l.number`;

const LOOK = entries("l.position = $2::bigint");
/** Fewer positions where they are large, but the one that is known and the next. The lengths are known without the contents. */
const READ = entries(`l.position >= $2::bigint AND l.position < coalesce((
    SELECT min(position) FROM (
      SELECT position, sum(octet_length(content)) OVER (ORDER BY position) AS bytes FROM platform.log
      WHERE group_name = $1 AND position >= $2::bigint AND position < $2::bigint + $3::bigint) AS sized
    WHERE bytes > ${READ_BYTES} AND position > $2::bigint + 1), $2::bigint + $3::bigint)`);

const APPEND = `WITH moved AS (
    UPDATE platform.groups SET position = $2::bigint, nonce = $4
    WHERE name = $1 AND position = $2::bigint - 1 AND nonce = $5 AND epoch = $6::bigint AND incarnation = $7 AND NOT stopped
    RETURNING *),
  entry AS (
    SELECT r.* FROM moved, unnest($8::text[], $9::bigint[], $10::text[]) AS r (file, number, content)),
  written AS (
    INSERT INTO platform.log SELECT $1, $2::bigint, file, number, $3::bigint, $4, $5, decode(content, 'base64') FROM entry),
  numbered AS (
    INSERT INTO platform.files SELECT $1, file, max(number) FROM entry GROUP BY file
    ON CONFLICT (group_name, file) DO UPDATE SET number = excluded.number)
  ${answer("EXISTS (SELECT FROM moved)", `coalesce((SELECT row_to_json(moved) FROM moved), ${GROUP})`)}${NO_ENTRY}`;

const JOIN = `WITH joined AS (
    INSERT INTO platform.nodes VALUES ($2, $3, 0, 0, 0, NULL)
    ON CONFLICT (node) DO UPDATE SET incarnation = excluded.incarnation, counter = 0, applied = 0, known = 0, acting = NULL
    WHERE platform.nodes.incarnation = $4 AND platform.nodes.counter = $5::bigint
    RETURNING 1)
  ${answer("EXISTS (SELECT FROM joined)", GROUP)}${NO_ENTRY}`;

const RENEW = `WITH renewed AS (
    UPDATE platform.nodes SET counter = $4::bigint, applied = $5::bigint, known = $6::bigint, acting = $7::bigint
    WHERE node = $2 AND incarnation = $3 AND counter < $4::bigint AND ($7::bigint IS NULL OR acting = $7::bigint)
    RETURNING 1)
  ${answer("EXISTS (SELECT FROM renewed)", GROUP)}${NO_ENTRY}`;

const BARRIER = `WITH barrier AS (
    INSERT INTO platform.barriers VALUES ($2, 1)
    ON CONFLICT (node) DO UPDATE SET count = platform.barriers.count + 1 RETURNING 1)
  ${answer("EXISTS (SELECT FROM barrier)", GROUP)}${NO_ENTRY}`;

/** Locks the former owner's row, and changes it: its renewal waits for this statement, or this one for its renewal. */
const TAKE = `WITH self AS (SELECT FROM platform.nodes WHERE node = $2 AND incarnation = $3 FOR UPDATE),
  former AS MATERIALIZED (
    SELECT counter FROM platform.nodes WHERE node = $5 AND incarnation = $6 AND acting = $4::bigint FOR UPDATE),
  taken AS (
    UPDATE platform.groups SET epoch = epoch + 1, owner = $2, incarnation = $3
    WHERE name = $1 AND epoch = $4::bigint AND owner = $5 AND incarnation = $6 AND NOT stopped AND EXISTS (SELECT FROM self)
      AND CASE WHEN $7::bigint IS NULL THEN NOT EXISTS (SELECT FROM former)
        ELSE EXISTS (SELECT FROM former WHERE counter = $7::bigint) END
    RETURNING *),
  acting AS (UPDATE platform.nodes SET acting = taken.epoch FROM taken WHERE node = $2),
  ended AS (UPDATE platform.nodes SET acting = NULL FROM taken WHERE node = $5 AND node <> $2)
  ${answer("EXISTS (SELECT FROM taken)", `coalesce((SELECT row_to_json(taken) FROM taken), ${GROUP})`)}${NO_ENTRY}`;

const TERMINATE = `${answer(
  "SELECT count(pg_terminate_backend(pid)) >= 0 FROM pg_stat_activity WHERE application_name = $2 AND pid <> pg_backend_pid()",
  GROUP,
)}${NO_ENTRY}`;

const STOP = `WITH ended AS (
    UPDATE platform.groups SET stopped = true WHERE name = $1 AND history = $2::bigint AND NOT stopped RETURNING *)
  ${answer("EXISTS (SELECT FROM ended)", `coalesce((SELECT row_to_json(ended) FROM ended), ${GROUP})`)}${NO_ENTRY}`;

/** Name by which backends of a process are found. */
export const applicationName = (incarnation: string): string => `platform ${incarnation}`;

/** Writes an array of PostgreSQL. */
const arrayOf = (values: readonly (string | number)[]): string =>
  `{${values.map((value) => `"${String(value).replace(/["\\]/g, "\\$&")}"`).join(",")}}`;

const base64Of = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64");

export function sqlOf(statement: Statement): StatementSql {
  switch (statement.kind) {
    case "look":
      return { sql: LOOK, parameters: [CORE, statement.position] };
    case "read":
      return { sql: READ, parameters: [CORE, statement.from, statement.limit] };
    case "join": {
      const { node, incarnation, replaces } = statement;
      return {
        sql: JOIN,
        parameters: [CORE, node, incarnation, replaces?.incarnation ?? null, replaces?.counter ?? null],
      };
    }
    case "renew": {
      const { node, incarnation, counter, applied, known, acting } = statement;
      return { sql: RENEW, parameters: [CORE, node, incarnation, counter, applied, known, acting] };
    }
    case "barrier":
      return { sql: BARRIER, parameters: [CORE, statement.node] };
    case "append": {
      const { position, epoch, nonce, previous, body } = statement.entry;
      const rows = [body.map(({ file }) => file), body.map(({ number }) => number)].map(arrayOf);
      // Base64 has nothing that an array of PostgreSQL would need to be told from its own signs.
      const contents = `{${body.map(({ content }) => `"${base64Of(content)}"`).join(",")}}`;
      const owner = [statement.epoch, statement.incarnation];
      return { sql: APPEND, parameters: [CORE, position, epoch, nonce, previous, ...owner, ...rows, contents] };
    }
    case "take": {
      const { node, incarnation, from } = statement;
      return {
        sql: TAKE,
        parameters: [CORE, node, incarnation, from.epoch, from.owner, from.incarnation, from.counter],
      };
    }
    case "terminate":
      return { sql: TERMINATE, parameters: [CORE, applicationName(statement.incarnation)] };
    case "stop":
      return { sql: STOP, parameters: [CORE, statement.history] };
  }
}
