import type { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { encodeFrame, readFrames } from "./frames.ts";
import { EscapeError, executeQuery, openDatabase, QueryError } from "./store.ts";
import type { ProcessRole, QueryFailure, QueryRequest } from "./types.ts";

/** The first argument by which the compiled executable knows that it is to be a query process. */
export const QUERY_PROCESS_COMMAND = "__query-process";
export const FLAG_FAILED = 0;
export const FLAG_OK = 1;

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

/**
 * A process of its own for one connection: it can be killed in the middle of a query, which no thread can. Requests come in
 * on standard input one at a time, answers go out on standard output; the end of the input is the end of the process.
 */
export async function runQueryProcess(path: string, role: ProcessRole): Promise<void> {
  await tieToParent();
  // Ctrl-C reaches the whole group; the server decides when its queries end.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  let database: Database | null = null;
  const execute = (request: QueryRequest): string => {
    database ??= openDatabase(path, role);
    try {
      return executeQuery(database, request);
    } catch (cause) {
      if (cause instanceof EscapeError) {
        database.close(true);
        database = null;
      }
      throw cause;
    }
  };
  const output = Bun.stdout.writer();
  for await (const { payload } of readFrames(Bun.stdin.stream())) {
    // The parent is the only one that writes here, and writes nothing else.
    const request = JSON.parse(Buffer.from(payload.buffer).toString("utf8")) as QueryRequest;
    output.write(answer(() => execute(request)));
    await output.flush();
  }
}

function answer(work: () => string): Uint8Array<ArrayBuffer> {
  try {
    return encodeFrame(FLAG_OK, work());
  } catch (cause) {
    const failure: QueryFailure =
      cause instanceof QueryError
        ? cause.failure
        : { status: 500, message: cause instanceof Error ? cause.message : "" };
    return encodeFrame(FLAG_FAILED, JSON.stringify(failure));
  }
}

/**
 * A server that is killed cannot end its processes, and one in the middle of an endless query would not see the end of its
 * input: Linux kills it with its parent. Should memory run out, the query is to go and not the server.
 */
async function tieToParent(): Promise<void> {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
    const { dlopen } = await import("bun:ffi");
    const library = dlopen("libc.so.6", { prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" } });
    library.symbols.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  } catch {
    // Another C library or a closed /proc: the end of the input still ends every process that is not in a query.
  }
}

// From source this file is the process; in the executable main.ts calls it.
if (import.meta.main && !Bun.isStandaloneExecutable) {
  const [path, role] = process.argv.slice(2);
  if (path !== undefined && (role === "reader" || role === "writer")) await runQueryProcess(path, role);
}
