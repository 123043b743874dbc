import { runBackupJob } from "../../backup/schedule/job.ts";
import { BACKUP_JOB_COMMAND } from "../../backup/schedule/job-process.ts";
import { systemClock } from "../../kernel/clock.ts";
import { declareCommand } from "../command.ts";
import { printAnswer } from "../output.ts";
import { abortOnStop, explained, stepBack } from "./backup.ts";
import { tryOpening } from "./verify-backup.ts";

/** One scheduled backup. The server starts it; the job is on standard input, the result on standard output. */
export const backupJobCommand = declareCommand({
  meta: { name: BACKUP_JOB_COMMAND, description: "Makes one scheduled backup", hidden: true },
  args: {},
  async run() {
    stepBack();
    const signal = abortOnStop();
    const job = JSON.parse(await Bun.stdin.text());
    const result = await explained(signal, "backup", () =>
      runBackupJob(job, { clock: systemClock, signal, tryOpening }),
    );
    await printAnswer(JSON.stringify(result));
    return 0;
  },
});
