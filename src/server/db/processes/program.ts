import type { FromProcess, ToProcess } from "./protocol.ts";

/** Context of one job in the program of a process. */
export interface JobContext {
  /** The bytes sent before the request. */
  readonly attached: readonly Uint8Array<ArrayBuffer>[];
  sendPart(part: unknown): void;
  /** Resolves when the server has room for an answer of `sizeBytes`. */
  room(sizeBytes: number): Promise<void>;
  /** Resolves to the server's answer, of `Job.answer`. */
  ask(question: unknown): Promise<unknown>;
}

export interface Program<Request> {
  /** Returns the answer, or a promise of it. One job runs at a time. */
  run(request: Request, context: JobContext): unknown;
  /** Returns what the server learns of an error; it must survive a structured clone. */
  failureOf(cause: unknown): unknown;
}

/**
 * Runs the jobs that the server sends until the connection to it ends. A module `*-job.ts` exports `start(settings)`, which calls
 * this.
 */
export function serveJobs<Request>({ run, failureOf }: Program<Request>): void {
  const send = (message: FromProcess): void => {
    process.send?.(message);
  };
  let attached: Uint8Array<ArrayBuffer>[] = [];
  let grantRoom = (): void => {};
  let tell = (_answer: unknown): void => {};

  const perform = async (id: number, request: Request, bytes: readonly Uint8Array<ArrayBuffer>[]): Promise<void> => {
    const context: JobContext = {
      attached: bytes,
      sendPart: (part) => send({ kind: "part", id, part }),
      room: (sizeBytes) =>
        new Promise((resolve) => {
          grantRoom = resolve;
          send({ kind: "room", id, sizeBytes });
        }),
      ask: (question) =>
        new Promise((resolve) => {
          tell = resolve;
          send({ kind: "ask", id, question });
        }),
    };
    try {
      const answer = run(request, context);
      send({ kind: "done", id, answer: answer instanceof Promise ? await answer : answer });
    } catch (cause) {
      send({ kind: "failed", id, failure: failureOf(cause) });
    }
  };

  process.on("message", (message: ToProcess) => {
    switch (message.kind) {
      case "bytes":
        attached.push(message.bytes);
        break;
      case "job": {
        const bytes = attached;
        attached = [];
        // The server sends the requests of this program's area.
        void perform(message.id, message.request as Request, bytes);
        break;
      }
      case "room":
        grantRoom();
        break;
      case "told":
        tell(message.answer);
        break;
    }
  });
  process.on("disconnect", () => process.exit(0));
}
