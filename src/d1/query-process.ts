import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { parseJsonBytes } from "../http/json-body.ts";
import { AppError } from "../kernel/errors.ts";
import { encodeFrame, readFrames, textOf } from "./frames.ts";
import { PROCESS_NICENESS } from "./limits.ts";
import { EscapeError, QueryError } from "./query-failure.ts";
import { parseQueryBody } from "./query-request.ts";
import { executeQuery, openConnection, type QueryConnection } from "./store.ts";
import type { ProcessRole, QueryFailure, QueryRequest } from "./types.ts";

/** The first argument by which the compiled executable knows that it is to be a query process. */
export const QUERY_PROCESS_COMMAND = "__query-process";
/** Of requests: a QueryRequest as JSON, or the body of an HTTP request as it came. */
export const FLAG_PARSED = 0;
export const FLAG_BODY = 1;
/** Of answers. */
export const FLAG_FAILED = 0;
export const FLAG_DONE = 1;
export const FLAG_ELSEWHERE = 2;

/**
 * A process of its own for one connection: it can be killed in the middle of a query, which no thread can. Requests come in
 * on standard input one at a time, answers go out on standard output; the end of the input is the end of the process.
 */
export async function runQueryProcess(path: string, role: ProcessRole): Promise<void> {
  giveWay();
  // Ctrl-C reaches the whole group; the server decides when its queries end.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  let connection: QueryConnection | null = null;
  const execute = (request: QueryRequest): string | null => {
    connection ??= openConnection(path, role);
    try {
      return executeQuery(connection, request);
    } catch (cause) {
      if (cause instanceof EscapeError) {
        connection.database.close();
        connection = null;
      }
      throw cause;
    }
  };
  const output = Bun.stdout.writer();
  for await (const { flag, chunks } of readFrames(Bun.stdin.stream())) {
    output.write(
      answer(() => {
        if (flag === FLAG_BODY) return execute(parseQueryBody(parseJsonBytes(chunks)));
        // The parent has parsed it, and writes nothing else.
        return execute(JSON.parse(textOf(chunks)) as QueryRequest);
      }),
    );
    await output.flush();
  }
}

function answer(work: () => string | null): Uint8Array<ArrayBuffer> {
  try {
    const text = work();
    return text === null ? encodeFrame(FLAG_ELSEWHERE, "") : encodeFrame(FLAG_DONE, text);
  } catch (cause) {
    return encodeFrame(FLAG_FAILED, JSON.stringify(failureIn(cause)));
  }
}

function failureIn(cause: unknown): QueryFailure {
  if (cause instanceof QueryError) return cause.failure;
  if (cause instanceof AppError) return { status: cause.status, message: cause.message, data: cause.data };
  return { status: 500, message: cause instanceof Error ? cause.message : "" };
}

/** To the server: it gets the processor first, and should memory run out, the query is to go and not the server. */
function giveWay(): void {
  try {
    setPriority(PROCESS_NICENESS);
    if (process.platform === "linux") writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Not allowed, or a closed /proc: the system chooses by itself.
  }
}

// From source this file is the process; in the executable main.ts calls it.
if (import.meta.main && !Bun.isStandaloneExecutable) {
  const [path, role] = process.argv.slice(2);
  if (path !== undefined && (role === "reader" || role === "writer")) await runQueryProcess(path, role);
}
