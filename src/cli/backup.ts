import { setPriority } from "node:os";
import { createBackup } from "../backup/create/create.ts";
import { BACKUP_NICENESS } from "../backup/limits.ts";
import { systemClock } from "../kernel/clock.ts";
import { isDiskFull } from "../kernel/errors.ts";
import { declareCommand } from "./command.ts";
import { dataOption } from "./options.ts";
import { printNote } from "./output.ts";
import { stopSignal } from "./signals.ts";
import { plural, sizeText } from "./transfer/amounts.ts";
import { CommandError } from "./usage-error.ts";

export const backupCommand = declareCommand({
  meta: { name: "backup", description: "Copies a data directory into one file, while its server runs or not" },
  args: {
    file: { type: "positional", description: "The file to write, for example backup.tar.zst", required: true },
    data: dataOption,
  },
  async run({ args }) {
    stepBack();
    const signal = abortOnStop();
    const summary = await explained(signal, "backup", () =>
      createBackup({ dataDirectory: args.data, file: args.file, clock: systemClock, signal }),
    );
    const { fileCount, contentBytes, sizeBytes, elsewhereCount, strangers, strangerCount } = summary;
    const content = `${plural(fileCount, "file")}, ${sizeText(contentBytes)}`;
    await printNote(`wrote ${args.file}: ${content} in ${sizeText(sizeBytes)}, as of ${summary.createdAt}`);
    if (elsewhereCount > 0) {
      await printNote(`${plural(elsewhereCount, "stored file")} not in it: their buckets keep them in object stores`);
    }
    if (strangerCount > 0) {
      const others = strangerCount > strangers.length ? ` and ${strangerCount - strangers.length} more` : "";
      await printNote(`not in it, as no server put them there: ${strangers.join(", ")}${others}`);
    }
    return 0;
  },
});

/** The server on this machine comes first. */
export function stepBack(): void {
  try {
    setPriority(BACKUP_NICENESS);
  } catch {
    // Where that is not allowed, the backup is as quick as everybody else.
  }
}

export function abortOnStop(): AbortSignal {
  const controller = new AbortController();
  void stopSignal().then(() => controller.abort());
  return controller.signal;
}

/** What is stopped says so, whatever it was doing; so does what finds no room, whichever file it was writing. */
export async function explained<T>(signal: AbortSignal, name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (signal.aborted) throw new CommandError(`The ${name} was stopped; nothing is left of it`, { cause });
    if (isDiskFull(cause)) throw new CommandError(`There is no room for the ${name}; nothing is left of it`, { cause });
    throw cause;
  }
}
