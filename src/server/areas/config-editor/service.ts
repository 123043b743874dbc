import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { AppError, conflict, forbidden } from "../../../kernel/errors.ts";
import type { AuditedChange } from "../../db/index.ts";
import { readConfig, writeConfig } from "./config-file.ts";
import type { Edit, Problem } from "./edits/edit.ts";
import { type PutBack, readHistory, revisionOf, writeHistory } from "./history.ts";
import { PREVIEWS_WAITING_MAX, PROBLEMS_MAX } from "./limits.ts";

/** The outcome of loading a config in another process. */
export interface Tried {
  problems: Problem[];
  /** The comparison with the stored records; null where the config could not be loaded. */
  data: { files: number; unfit: number; notes: string[] } | null;
}

/** Loads a config's text in another process, which is killed after a deadline. */
export type TryText = (text: string) => Promise<Tried>;

/** A config that lies in a file. */
export interface ConfigFile {
  /** The absolute path. */
  readonly path: string;
  /** Tries a text, under `platform dev`; null: nothing is run, and nothing is written. */
  readonly tryText: TryText | null;
}

export interface Preview {
  source: string;
  diff: string;
  migration: string | null;
  data: Tried["data"];
  problems: Problem[];
  warnings: string[];
}

interface ShownSource {
  file: string | null;
  source: string | null;
  writable: boolean;
  revision: string | null;
  running: string | null;
  undoable: number;
  putBack: PutBack | null;
}

const NO_FILE: ShownSource = {
  file: null,
  source: null,
  writable: false,
  revision: null,
  running: null,
  undoable: 0,
  putBack: null,
};

/** A text of the config, with the history that belongs to it. */
interface State {
  text: string;
  history: Parameters<typeof writeHistory>[1];
}

/** Edits the config's file. One request is worked on at a time, so that none is written over another one. */
export class ConfigEditor {
  readonly #file: ConfigFile | null;
  readonly #dataDirectory: string;
  readonly #audit: (change: AuditedChange) => Promise<void>;
  /** The revision with which this server has started; null where nothing is written. */
  readonly #running: string | null;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(deps: {
    /** The config's file; null in a product, whose config is in the executable. */
    file: ConfigFile | null;
    dataDirectory: string;
    audit: (change: AuditedChange) => Promise<void>;
  }) {
    this.#file = deps.file;
    this.#dataDirectory = deps.dataDirectory;
    this.#audit = deps.audit;
    this.#running = deps.file === null || deps.file.tryText === null ? null : revisionIn(deps.file.path);
  }

  /** Returns the config's text. */
  source(): ShownSource {
    if (this.#file === null) return NO_FILE;
    const { path, tryText } = this.#file;
    const source = readConfig(path);
    const { writes, putBack } = readHistory(this.#dataDirectory, path);
    const undoable = tryText === null ? 0 : writes.length;
    return {
      file: path,
      source,
      writable: tryText !== null,
      revision: revisionOf(source),
      running: this.#running,
      undoable,
      putBack,
    };
  }

  /**
   * Applies edits, and writes them if asked to and if the result holds. Errors: 400 for an edit that is wrong; 403 where nothing may
   * be written; 409 for a config that has changed since `revision`.
   */
  edit(asked: { edits: readonly Edit[]; revision: string | null; isWritten: boolean }): Promise<Preview> {
    const file = this.#requireFile();
    if (asked.isWritten) requireWritable(file);
    return this.#inTurn(async () => {
      const before = readConfig(file.path);
      if (asked.revision !== null && asked.revision !== revisionOf(before)) throw changed();
      // Loaded here: few servers' configs are edited, and the parser is large.
      const { applyEdits } = await import("./edits/apply.ts");
      const { source, migration, warnings, problems } = await applyEdits(before, asked.edits);
      const preview = await this.#preview(file, before, { source, migration, warnings, problems });
      if (!asked.isWritten || preview.problems.length > 0 || source === before) return preview;
      requireUnchanged(file.path, before);
      const history = readHistory(this.#dataDirectory, file.path);
      const write = { before, revision: revisionOf(source), migration, hasStarted: false };
      const result = { text: source, history: { ...history, writes: [...history.writes, write], putBack: null } };
      await this.#writeAudited(file.path, { text: before, history }, result, {
        action: "config.edit",
        target: "config",
        after: { edits: asked.edits },
      });
      return preview;
    });
  }

  /** Puts the text before the newest write back. Errors: 403; 409 where there is none, the file has changed since, or values would be lost. */
  undo(): Promise<Preview> {
    const file = this.#requireFile();
    requireWritable(file);
    return this.#inTurn(async () => {
      const now = readConfig(file.path);
      const history = readHistory(this.#dataDirectory, file.path);
      const newest = history.writes.at(-1);
      if (newest === undefined) throw conflict("There is no write to undo");
      if (newest.revision !== revisionOf(now)) throw changed();
      if (newest.migration !== null) {
        throw conflict(`It cannot be undone: what its migration has removed is lost (${newest.migration})`);
      }
      const edited = { source: newest.before, migration: null, warnings: [], problems: [] };
      const preview = await this.#preview(file, now, edited);
      const [problem] = preview.problems;
      if (problem !== undefined) throw conflict(`It cannot be undone: ${problem.message}`);
      requireUnchanged(file.path, now);
      const result = {
        text: newest.before,
        history: { ...history, writes: history.writes.slice(0, -1), putBack: null },
      };
      await this.#writeAudited(file.path, { text: now, history }, result, { action: "config.undo", target: "config" });
      return preview;
    });
  }

  #requireFile(): ConfigFile {
    if (this.#file === null) throw conflict("The config is in the executable: edit it where it is built");
    return this.#file;
  }

  async #preview(
    { path, tryText }: ConfigFile,
    before: string,
    { source, migration, warnings, problems }: Omit<Preview, "diff" | "data">,
  ): Promise<Preview> {
    const tried: Tried = tryText === null ? { problems: [], data: null } : await tryText(source);
    const all = [...problems, ...tried.problems, ...unfit(tried)].slice(0, PROBLEMS_MAX);
    const { diffOf } = await import("./diff.ts");
    const diff = diffOf(basename(path), before, source);
    return { source, diff, migration, data: tried.data, problems: all, warnings: warnings.slice(0, PROBLEMS_MAX) };
  }

  /** Writes a text, and then its entry in the audit log, which is of what has happened. If that fails, the text before is put back. */
  async #writeAudited(path: string, before: State, after: State, change: AuditedChange): Promise<void> {
    this.#write(path, before.text, after);
    try {
      await this.#audit(change);
    } catch (cause) {
      this.#write(path, after.text, before);
      throw cause;
    }
  }

  /** Writes the history first: after a crash between the two, its newest entry is of another text, and is not undone. */
  #write(path: string, before: string, { text, history }: State): void {
    requireUnchanged(path, before);
    writeHistory(this.#dataDirectory, history);
    writeConfig(path, text);
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= PREVIEWS_WAITING_MAX) throw new AppError(503, "Too many edits are being tried");
    this.#waiting++;
    const result = this.#last.then(work);
    const done = (): void => {
      this.#waiting--;
    };
    this.#last = result.then(done, done);
    return result;
  }
}

/** Returns the revision of a file of any size; null where it is gone. */
function revisionIn(path: string): string | null {
  try {
    return revisionOf(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

const changed = (): AppError => conflict("The config has changed meanwhile: load it again");

/** Throws where the file has another text by now: an editor may have saved it while the edits were tried. */
function requireUnchanged(path: string, text: string): void {
  if (readConfig(path) !== text) throw changed();
}

function requireWritable({ tryText }: ConfigFile): void {
  if (tryText === null) throw forbidden("The config is written under platform dev only: copy the diff");
}

/** Returns the files that would not open as problems. */
const unfit = ({ data }: Tried): Problem[] =>
  data === null || data.unfit === 0 ? [] : [{ path: "databases", message: data.notes.join("\n") }];
