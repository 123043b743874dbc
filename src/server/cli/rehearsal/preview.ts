import { rmSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { systemClock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { ownCommand } from "../../../kernel/process/own-command.ts";
import { type ConfigFile, noteStarted, putBackFailedEdit, type Tried } from "../../areas/config-editor/index.ts";
import { PREVIEW_MAX_MS } from "../limits.ts";
import { printNote } from "../output.ts";
import { PREVIEW_JOB_COMMAND, type PreviewJob } from "./protocol.ts";

/** Returns the config's file for edits; `isWritable`: its edits may be tried and written, as under `platform dev`. */
export function configFileOf(file: string, dataDirectory: string, isWritable: boolean): ConfigFile {
  const path = resolve(file);
  return { path, tryText: isWritable ? (text) => tryText({ path, text, dataDirectory }) : null };
}

let previews = 0;

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
  const extension = extname(path);
  const file = join(dirname(path), `.${basename(path, extension)}.${process.pid}-${++previews}.preview${extension}`);
  try {
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
    return namedAs(path, file, await runPreview({ file, dataDirectory: resolve(dataDirectory) }));
  } finally {
    rmSync(file, { force: true });
  }
}

/** Runs a preview in a process that is killed after its deadline. */
async function runPreview(job: PreviewJob): Promise<Tried> {
  const child = Bun.spawn([...ownCommand(), PREVIEW_JOB_COMMAND], {
    env: { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: "1" },
    stdin: Buffer.from(JSON.stringify(job)),
    stdout: "pipe",
    stderr: "ignore",
    timeout: PREVIEW_MAX_MS,
    killSignal: "SIGKILL",
  });
  const output = await new Response(child.stdout).text();
  await child.exited;
  // The answer is the last line: the config may print others.
  const line = output.trimEnd().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line) as Tried;
  } catch {
    const why = child.signalCode === null ? "ended without an answer" : `is not loaded after ${PREVIEW_MAX_MS} ms`;
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
