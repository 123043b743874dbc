import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../../../kernel/clock.ts";
import type { Logger } from "../../../kernel/logger.ts";
import { verifyBackup } from "../../areas/backup/archive/verify.ts";
import { runBackupJob, verifyStored } from "../../areas/backup/job/job.ts";
import { BACKUP_JOB_COMMAND } from "../../areas/backup/job/job-process.ts";
import { openPlatform } from "../../platform/open.ts";
import { CommandError } from "../errors.ts";
import { option } from "../options.ts";
import { plural, printAnswer, printNote } from "../output.ts";
import { abortOnStop, explained, sizeText, stepBack } from "./backup.ts";

export const verifyBackupCommand = new Command("verify-backup")
  .description("Restores a backup into a scratch folder and checks everything in it")
  .argument("<FILE>", "A file that platform backup has written")
  .addOption(option("--scratch <DIR>", "Where the scratch folder is made; default: beside FILE"))
  .action(async (file, { scratch }) => {
    stepBack();
    const signal = abortOnStop();
    const verified = await explained(signal, "verification", () => verifyBackup({ file, scratch, tryOpening, signal }));
    const { header, fileCount, contentBytes, databaseCount, elsewhereCount } = verified;
    const content = `${plural(fileCount, "file")}, ${sizeText(contentBytes)}, ${plural(databaseCount, "database")}`;
    await printNote(`${file} holds: ${content}, as of ${header.createdAt}, made by ${header.platform}`);
    if (elsewhereCount > 0) {
      await printNote(
        `${plural(elsewhereCount, "stored file")} not included: their buckets keep them in object stores`,
      );
    }
  });

/**
 * Opens a data directory with an empty config, as a drill: no code of a config runs, and nothing is sent. Errors: the platform does
 * not serve.
 */
export async function tryOpening(dataDirectory: string): Promise<void> {
  const failures: string[] = [];
  const note = (message: string): void => void failures.push(message);
  const logger: Logger = { info() {}, warn() {}, error: note };
  const platform = await openPlatform({}, { data: dataDirectory, environment: {}, isDrill: true, logger });
  try {
    const answer = await platform.fetch(new Request("http://localhost/api/health"));
    if (answer.status !== 200) failures.unshift(`its health is ${answer.status}`);
  } finally {
    await platform.stop();
  }
  if (failures.length > 0) throw new CommandError(failures.join("; "));
}

/** Makes or verifies one backup. The server starts this process; the job is on standard input, the result on standard output. */
export const backupJobCommand = new Command(BACKUP_JOB_COMMAND)
  .description("Makes or verifies one backup of a running server")
  .action(async () => {
    stepBack();
    const signal = abortOnStop();
    const job = JSON.parse(await Bun.stdin.text());
    const deps = { clock: systemClock, signal, tryOpening };
    const result =
      "stored" in job
        ? await explained(signal, "verification", () => verifyStored(job, deps))
        : await explained(signal, "backup", () => runBackupJob(job, deps));
    await printAnswer(JSON.stringify(result));
  });
