import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { ownChild } from "../support/children.ts";

const ANSWER_TIMEOUT_MS = 30_000;

/** Failed operation of an adapter: the status (0 without an answer of the server) and the codes of fields. */
export interface Failure {
  status: number;
  message?: string;
  fields?: JsonObject;
}

export type Outcome = { result: JsonValue } | { error: Failure };

/** Client under test: a process that carries out one operation for each line of its input. */
export interface Adapter {
  /** Capabilities: `files`, `live`, `presence`, `broadcast`, `rooms`. */
  readonly supports: readonly string[];
  call(client: string, operation: string, args: JsonObject): Promise<Outcome>;
  end(): Promise<void>;
}

/** Starts an adapter. Errors: when it does not answer `hello`. */
export async function startAdapter(command: readonly string[], cwd?: string): Promise<Adapter> {
  const child = Bun.spawn([...command], { stdin: "pipe", stdout: "pipe", stderr: "inherit", ...(cwd && { cwd }) });
  ownChild(child);
  const waiting = new Map<number, (outcome: Outcome) => void>();
  let lastId = 0;
  void readLines(child.stdout, (line) => {
    const { id, ...outcome } = JSON.parse(line) as { id: number } & Outcome; // an adapter that writes others fails by it
    waiting.get(id)?.(outcome);
    waiting.delete(id);
  });

  const call = async (client: string, operation: string, args: JsonObject): Promise<Outcome> => {
    const id = ++lastId;
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    waiting.set(id, resolve);
    const timer = setTimeout(() => reject(new Error(`no answer to ${operation}`)), ANSWER_TIMEOUT_MS);
    void child.exited.then((code) => reject(new Error(`the adapter ended with ${code}`)));
    child.stdin.write(`${JSON.stringify({ id, client, do: operation, with: args })}\n`);
    await child.stdin.flush();
    return promise.finally(() => clearTimeout(timer));
  };

  const hello = await call("", "hello", {});
  if (!("result" in hello)) throw new Error("the adapter refused hello");
  const { supports } = hello.result as { supports: string[] }; // the form that SPEC.md asks for
  return {
    supports,
    call,
    async end() {
      await child.stdin.end();
      child.kill();
      await child.exited;
    },
  };
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") onLine(line);
  }
}
