import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../../../kernel/clock.ts";
import { runBackupJob, verifyStored } from "../../areas/backup/job/job.ts";
import { BACKUP_JOB_COMMAND } from "../../areas/backup/job/job-process.ts";
import { printAnswer } from "../output.ts";
import { abortOnStop, explained, stepBack } from "./backup.ts";
import { tryOpening } from "./verify-backup.ts";

/** One backup, or the verification of one. The server starts it; the job is on standard input, the result on standard output. */
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
