import type { Clock } from "../../../kernel/clock.ts";
import { ownCommand } from "../../../kernel/process/own-command.ts";

/** A job for a command of this program, in a process of its own. */
interface OwnJob {
  command: string;
  /** The command's standard input, as JSON. */
  job: unknown;
  /** Characters that are kept of each output: the last ones, as it may print without end. */
  outputMax: number;
  /** Time after which it is killed. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Time between SIGTERM and SIGKILL when `signal` is aborted, for a process that removes its files. Default 0: no SIGTERM. */
  stopMs?: number;
  clock: Clock;
}

/** Runs a job, which ends with the server, even one that is killed. `problem`: the error that it printed; null when it succeeded. */
export async function runOwnJob({ command, job, outputMax, timeoutMs, signal, stopMs = 0, clock }: OwnJob) {
  const child = Bun.spawn([...ownCommand(), command], {
    env: { ...process.env, BUN_FEATURE_FLAG_NO_ORPHANS: "1" },
    stdin: Buffer.from(JSON.stringify(job)),
    stdout: "pipe",
    stderr: "pipe",
  });
  const timers: (() => void)[] = [];
  let isLate = false;
  const kill = (): void => child.kill("SIGKILL");
  const stop = (): void => {
    child.kill(stopMs === 0 ? "SIGKILL" : "SIGTERM");
    timers.push(clock.after(stopMs, kill));
  };
  const endLate = (): void => {
    isLate = true;
    kill();
  };
  if (timeoutMs !== undefined) timers.push(clock.after(timeoutMs, endLate));
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  const ends = [endOf(child.stdout, outputMax), endOf(child.stderr, outputMax)] as const;
  const [output, errors, code] = await Promise.all([...ends, child.exited]);
  signal?.removeEventListener("abort", stop);
  for (const cancel of timers) cancel();
  const reason = isLate ? "it took too long" : errors.trim().replace(/^platform: /, "");
  return { output, isLate, problem: code === 0 ? null : reason || `its process ended with ${code}` };
}

async function endOf(stream: ReadableStream<Uint8Array>, charactersMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > 2 * charactersMax) text = text.slice(-charactersMax);
  }
  return text.slice(-charactersMax);
}
