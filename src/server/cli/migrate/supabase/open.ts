import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError } from "../../errors.ts";
import { readDump } from "./dump.ts";
import type { PgSource } from "./source.ts";

const CUSTOM = "PGDMP";

export const isConnection = (source: string): boolean => /^postgres(?:ql)?:\/\//.test(source);

/** Whether a file is a dump in the custom form of `pg_dump`. */
export function isCustomDump(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(CUSTOM.length);
    readSync(file, head, 0, CUSTOM.length, 0);
    return head.toString("latin1") === CUSTOM;
  } finally {
    closeSync(file);
  }
}

/**
 * Reads a dump, or dumps a database with `pg_dump` first. A password of a connection goes by the environment: no list of processes and
 * no message has it. Errors: CommandError.
 */
export async function withSource<T>(place: string, work: (source: PgSource) => Promise<T>): Promise<T> {
  const isRemote = isConnection(place);
  if (!isRemote && !isCustomDump(place)) return work(readDump(place));
  const folder = mkdtempSync(join(tmpdir(), "platform-migrate-"));
  try {
    const plain = join(folder, "dump.sql");
    if (isRemote) await dump(place, plain);
    else await run(["pg_restore", "--no-owner", "-f", plain, place], {});
    return await work(readDump(plain));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function dump(url: string, file: string): Promise<void> {
  const { username, password, hostname, port, pathname, searchParams } = new URL(url);
  const given: Record<string, string> = {
    PGHOST: decodeURIComponent(hostname),
    PGPORT: port === "" ? "5432" : port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)) || "postgres",
  };
  const mode = searchParams.get("sslmode");
  if (mode !== null) given["PGSSLMODE"] = mode;
  await run(["pg_dump", "--no-owner", "-n", "public", "-n", "auth", "-n", "storage", "-f", file], given);
}

async function run([program = "", ...args]: readonly string[], env: Record<string, string>): Promise<void> {
  const path = Bun.which(program);
  if (path === null)
    throw new CommandError(
      `${program} is not on this machine: install PostgreSQL's client, or give a dump in plain form`,
    );
  const child = Bun.spawn([path, ...args], {
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [text, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code === 0) return;
  const password = env["PGPASSWORD"] ?? "";
  const shown = password === "" ? text : text.replaceAll(password, "…");
  throw new CommandError(`${program} ended with ${code}: ${shown.trim()}`);
}
