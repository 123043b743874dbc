import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { tracedCalls } from "./trace.ts";

const UNFINISHED = /\.\d+\.new$/;
/** Objects that are replaced; all others keep their content. */
const REPLACED = new Set(["manifest", ".platform-owner.json"]);

interface Stored {
  line: number;
  key: string;
  /** null: the content that it has in the end. */
  content: Buffer | null;
}

/** The objects of a store in a folder that no power cut concerns, each from the moment at which it got its name. */
export class RecordedStore {
  readonly #folder: string;
  readonly #stored: Stored[] = [];

  constructor(trace: string, folder: string) {
    this.#folder = folder;
    const written = new Map<string, Buffer[]>();
    // Copies of files are made by calls that the trace has no content of.
    for (const call of tracedCalls(trace, folder, () => {})) {
      if (call.kind === "open" && call.creates && UNFINISHED.test(call.path)) written.set(call.path, []);
      else if (call.kind === "write") written.get(call.path)?.push(call.data);
      else if (call.kind === "rename") {
        const key = relative(folder, call.to);
        const content = REPLACED.has(key) ? Buffer.concat(written.get(call.from) ?? []) : null;
        this.#stored.push({ line: call.line, key, content });
      }
    }
  }

  /** Writes the objects that were there at this line of the trace below `target`. false: there was no manifest. */
  at(line: number, target: string): boolean {
    for (const { line: since, key, content } of this.#stored) {
      if (since > line) break;
      const path = join(target, key);
      mkdirSync(dirname(path), { recursive: true });
      if (content !== null) writeFileSync(path, content);
      // An object that was deleted later was needed by no moment.
      else if (existsSync(join(this.#folder, key))) cpSync(join(this.#folder, key), path);
    }
    return existsSync(join(target, "manifest"));
  }
}
