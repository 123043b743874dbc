import { AppError } from "../kernel/errors.ts";
import { encodeFrame, encodeHeader, readFrames } from "./frames.ts";
import type { AnswerRoom, Reservation } from "./large-answers.ts";
import { FLAG_BODY, FLAG_DONE, FLAG_ELSEWHERE, FLAG_PARSED, QUERY_PROCESS_COMMAND } from "./query-process.ts";
import type { ProcessRole, QueryAnswer, SentQuery } from "./types.ts";

/** The server's end of one query process. It answers one query at a time. */
export interface ProcessConnection {
  run(query: SentQuery, callerName: string): Promise<QueryAnswer>;
  /** Kills the process, also in the middle of a query, whose promise rejects with `reason`. Resolves when it has ended. */
  kill(reason: Error): Promise<void>;
  /** Lets the process end by itself, which it does after the query under way. */
  end(): Promise<void>;
}

const NO_ROOM_TAKEN = { release: () => {} };

/** `onExit` is called once, however the process ended. */
export function startQueryProcess(options: {
  path: string;
  role: ProcessRole;
  room: AnswerRoom;
  onExit: () => void;
}): ProcessConnection {
  const { path, role, room, onExit } = options;
  const child = Bun.spawn([...commandOfQueryProcess(), path, role], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
    env: processEnvironment(),
  });
  let waiting: PromiseWithResolvers<QueryAnswer> | null = null;
  let caller = "";
  let hasEnded = false;
  let exitReason: Error = new AppError(503, "The query process ended unexpectedly; the query may be sent again");

  /** Of the answer that is being received. */
  let reservation: Reservation | null = null;
  const admit = async (sizeBytes: number): Promise<void> => {
    reservation = room.reserve(caller, sizeBytes);
    // A process that is killed while its answer waits has none to give.
    await Promise.race([reservation.ready, child.exited]);
  };

  const receive = async (): Promise<void> => {
    for await (const { flag, chunks, sizeBytes } of readFrames(child.stdout, admit)) {
      const answered = waiting;
      const { release } = reservation ?? NO_ROOM_TAKEN;
      waiting = null;
      reservation = null;
      if (answered === null) release();
      else answered.resolve({ outcome: outcomeOf(flag), chunks, sizeBytes, release });
    }
  };
  const exited = Promise.allSettled([receive(), child.exited]).then(() => {
    hasEnded = true;
    reservation?.release();
    onExit();
    waiting?.reject(exitReason);
    waiting = null;
  });

  const send = async (query: SentQuery): Promise<void> => {
    if (query.kind === "parsed") {
      child.stdin.write(encodeFrame(FLAG_PARSED, JSON.stringify(query.request)));
      await child.stdin.flush();
      return;
    }
    child.stdin.write(encodeHeader(FLAG_BODY, sizeOfBytes(query.chunks)));
    for (const chunk of query.chunks) {
      if (hasEnded) return;
      child.stdin.write(chunk);
      // A pipe holds 64 KiB: the rest is written as the process reads.
      await child.stdin.flush();
    }
  };

  return {
    async run(query, callerName) {
      if (hasEnded) throw exitReason;
      caller = callerName;
      waiting = Promise.withResolvers<QueryAnswer>();
      const { promise } = waiting;
      // A pipe broken by the process's end is told by its exit.
      send(query).catch(() => {});
      return promise;
    },
    kill(reason) {
      exitReason = reason;
      child.kill("SIGKILL");
      return exited;
    },
    async end() {
      await child.stdin.end();
      await exited;
    },
  };
}

export const sizeOfBytes = (chunks: readonly Uint8Array[]): number =>
  chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);

function outcomeOf(flag: number): QueryAnswer["outcome"] {
  if (flag === FLAG_DONE) return "done";
  return flag === FLAG_ELSEWHERE ? "elsewhere" : "failed";
}

/** No secret of the server is a query's business. */
function processEnvironment(): Record<string, string> {
  // A process in the middle of an endless query does not see the end of its input: it dies with the server, however that ends.
  const environment: Record<string, string> = { BUN_FEATURE_FLAG_NO_ORPHANS: "1" };
  const directory = process.env["TMPDIR"];
  if (directory !== undefined) environment["TMPDIR"] = directory;
  return environment;
}

/** The compiled executable is its own query process; from source it is a file of its own, so that embedders have it too. */
function commandOfQueryProcess(): string[] {
  if (Bun.isStandaloneExecutable) return [process.execPath, QUERY_PROCESS_COMMAND];
  return [process.execPath, Bun.fileURLToPath(new URL("./query-process.ts", import.meta.url))];
}
