import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppError } from "../../../kernel/errors.ts";
import { ownCommand } from "../../../kernel/process/own-command.ts";
import { ANSWER_MAX_BYTES, CONFIG_TIMEOUT_MS, CONFIGS_AT_ONCE_MAX } from "./limits.ts";

/**
 * Creates what tries configs: each in a process with a folder of its own, without the server's environment, for at most five
 * seconds. Errors: 503 while others are tried.
 */
export function createConfigCheck({ dataDirectory }: { dataDirectory: string }) {
  let running = 0;
  return async (source: string, { isPlan }: { isPlan: boolean }): Promise<{ isFine: boolean; text: string }> => {
    if (running >= CONFIGS_AT_ONCE_MAX) throw new AppError(503, "Other configs are being tried: try again");
    running += 1;
    const folder = await mkdtemp(join(tmpdir(), "platform-config-"));
    try {
      const file = join(folder, "platform.config.ts");
      await Bun.write(file, source);
      return await check(
        [...ownCommand(), "check", "--config", file, ...(isPlan ? ["--data", dataDirectory] : [])],
        folder,
      );
    } finally {
      running -= 1;
      await rm(folder, { recursive: true, force: true });
    }
  };
}

async function check(command: string[], folder: string): Promise<{ isFine: boolean; text: string }> {
  const child = Bun.spawn(command, {
    cwd: folder,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: CONFIG_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const [output, notes, code] = await Promise.all([start(child.stdout), start(child.stderr), child.exited]);
  const text = `${output}${notes}`.replaceAll(`${folder}/`, "").trim();
  if (child.signalCode === null) return { isFine: code === 0, text };
  return { isFine: false, text: `${text}\nThe config was not read within ${CONFIG_TIMEOUT_MS} ms`.trim() };
}

/** Reads the start of an output; the rest is read and dropped, so that the process can end. */
async function start(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream)
    if (text.length < ANSWER_MAX_BYTES / 4) text += decoder.decode(chunk, { stream: true });
  return text.slice(0, ANSWER_MAX_BYTES / 4);
}
