import { readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { type ConfigFile, noteStarted, putBackFailedEdit, type Tried } from "../../areas/config-editor/index.ts";
import { runOwnJob } from "../../db/processes/own-job.ts";
import { PREVIEW_MAX_MS, PREVIEW_OUTPUT_CHARACTERS } from "../limits.ts";
import { printNote } from "../output.ts";
import { PREVIEW_JOB_COMMAND, type PreviewJob } from "./protocol.ts";
import { typeFaults } from "./type-faults.ts";

/** Returns the config's file for edits; `isWritable`: its edits may be tried and written, as under `platform dev`. */
export function configFileOf(file: string, dataDirectory: string, isWritable: boolean): ConfigFile {
  const path = resolve(file);
  if (isWritable) removeLeft(path);
  return { path, tryText: isWritable ? (text) => tryText({ path, text, dataDirectory }) : null };
}

let previews = 0;

/** Returns the beginning and the end of the names of texts that are tried beside a config. */
function namesBeside(path: string): { start: string; end: string } {
  const extension = extname(path);
  return { start: `.${basename(path, extension)}.`, end: `.preview${extension}` };
}

/** Removes texts that a killed server has left beside its config: only one server tries and writes them there. */
function removeLeft(path: string): void {
  const { start, end } = namesBeside(path);
  removeFrom(dirname(path), (name) => name.startsWith(start) && (name.endsWith(end) || name.endsWith(`${end}.json`)));
  // What was about to replace the config, where a link leads to.
  const real = realpathSync(path);
  const unwritten = `${basename(real)}.`;
  removeFrom(dirname(real), (name) => name.startsWith(unwritten) && /^\d+\.new$/.test(name.slice(unwritten.length)));
}

function removeFrom(folder: string, isLeft: (name: string) => boolean): void {
  for (const name of readdirSync(folder)) if (isLeft(name)) rmSync(join(folder, name), { force: true });
}

/** Tries a text as a file beside the config, whose imports are relative to it. */
async function tryText({
  path,
  text,
  dataDirectory,
}: {
  path: string;
  text: string;
  dataDirectory: string;
}): Promise<Tried> {
  const { start, end } = namesBeside(path);
  const file = join(dirname(path), `${start}${process.pid}-${++previews}${end}`);
  try {
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
    const job = { file, dataDirectory: resolve(dataDirectory) };
    const [tried, faults] = await Promise.all([runPreview(job), typeFaults({ path, file })]);
    const problems = faults.map((message) => ({ path: "", message }));
    return namedAs(path, file, { ...tried, problems: [...tried.problems, ...problems] });
  } finally {
    rmSync(file, { force: true });
  }
}

/** Runs a preview in a process that is killed after its deadline. Its answer is the last line: the config may print others. */
async function runPreview(job: PreviewJob): Promise<Tried> {
  const bounds = { outputMax: PREVIEW_OUTPUT_CHARACTERS, timeoutMs: PREVIEW_MAX_MS };
  const { output, isLate } = await runOwnJob({ command: PREVIEW_JOB_COMMAND, job, clock: systemClock, ...bounds });
  try {
    return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "") as Tried;
  } catch {
    const why = isLate ? `is not loaded after ${PREVIEW_MAX_MS} ms` : "ended without an answer";
    return { problems: [{ path: "", message: `the config ${why}` }], data: null };
  }
}

/** Names the config's own file in messages, in place of the one that was tried. */
function namedAs(path: string, file: string, { problems, data }: Tried): Tried {
  const named = problems.map((one) => ({ ...one, message: one.message.replaceAll(file, path) }));
  return { problems: named, data };
}

/** Puts the text before an edit back, if the server cannot start with the edited one. */
export async function putBackEdit(file: string, data: string, cause: unknown): Promise<void> {
  const edited = { file: resolve(file), dataDirectory: resolve(data), reason: reasonOf(cause), clock: systemClock };
  if (putBackFailedEdit(edited)) await printNote("platform: the edited config does not start: the text before is back");
}

/** Notes that the server has started with its config. */
export const noteStart = (file: string, data: string): void => noteStarted(resolve(file), resolve(data));
