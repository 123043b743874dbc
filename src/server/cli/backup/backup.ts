import { setPriority } from "node:os";
import { Command } from "@commander-js/extra-typings";
import prettyBytes from "pretty-bytes";
import { systemClock } from "../../../kernel/clock.ts";
import { isDiskFull } from "../../../kernel/errors.ts";
import { createBackup } from "../../areas/backup/archive/create.ts";
import { BACKUP_NICENESS } from "../../areas/backup/limits.ts";
import { CommandError } from "../errors.ts";
import { dataOption } from "../options.ts";
import { plural, printNote } from "../output.ts";
import { stopSignal } from "../serve/signals.ts";

export const backupCommand = new Command("backup")
  .description("Copies a data directory into one file, also while its server runs")
  .argument("<FILE>", "The file to write, for example backup.tar.zst")
  .addOption(dataOption)
  .action(async (file, { data }) => {
    stepBack();
    const signal = abortOnStop();
    const summary = await explained(signal, "backup", () =>
      createBackup({ dataDirectory: data, file, clock: systemClock, signal }),
    );
    const { fileCount, contentBytes, sizeBytes, elsewhereCount, strangers, strangerCount } = summary;
    const content = `${plural(fileCount, "file")}, ${sizeText(contentBytes)}`;
    await printNote(`wrote ${file}: ${content} in ${sizeText(sizeBytes)}, as of ${summary.createdAt}`);
    if (elsewhereCount > 0) {
      await printNote(
        `${plural(elsewhereCount, "stored file")} not included: their buckets keep them in object stores`,
      );
    }
    if (strangerCount > 0) {
      const others = strangerCount > strangers.length ? ` and ${strangerCount - strangers.length} more` : "";
      await printNote(`not included, as they are not files of a server: ${strangers.join(", ")}${others}`);
    }
  });

/** Formats a size, such as `312.8 MiB`; in whole bytes below one KiB. */
export const sizeText = (bytes: number): string => prettyBytes(bytes, { binary: true, maximumFractionDigits: 1 });

/** Lowers the priority of this process below that of the server. */
export function stepBack(): void {
  try {
    setPriority(BACKUP_NICENESS);
  } catch {
    // Without permission, this process keeps its priority.
  }
}

export function abortOnStop(): AbortSignal {
  const controller = new AbortController();
  void stopSignal().then(() => controller.abort());
  return controller.signal;
}

/**
 * Runs the work and explains its failure. Errors: a CommandError when the work was stopped, or when the disk is full; otherwise
 * those of the work.
 */
export async function explained<T>(signal: AbortSignal, name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (signal.aborted) throw new CommandError(`The ${name} was stopped; its files were removed`, { cause });
    if (isDiskFull(cause))
      throw new CommandError(`The disk is full: there is not enough space for the ${name}; its files were removed`, {
        cause,
      });
    throw cause;
  }
}
