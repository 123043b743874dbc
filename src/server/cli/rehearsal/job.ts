import { Command } from "@commander-js/extra-typings";
import { type RehearsalJob, rehearseFiles } from "../../db/index.ts";
import { stepBack } from "../backup/backup.ts";
import { LOGGED_INSTANCES_MAX, WORK_SLICE_MS } from "../limits.ts";
import { printAnswer } from "../output.ts";
import { REHEARSAL_JOB_COMMAND, type RehearsalLine } from "./protocol.ts";

/** Runs a rehearsal. The job is on standard input. */
export const rehearsalJobCommand = new Command(REHEARSAL_JOB_COMMAND)
  .description("Tries the schema on every instance")
  .action(async () => {
    stepBack();
    // The server that started this process wrote it.
    const job = JSON.parse(await Bun.stdin.text()) as RehearsalJob;
    const counts = { looked: 0, unfit: 0, untried: 0 };
    let workedSince = performance.now();
    for (const file of rehearseFiles(job)) {
      counts.looked++;
      if (file.state !== "fits") {
        counts[file.state]++;
        if (counts.unfit + counts.untried <= LOGGED_INSTANCES_MAX) await print({ file });
      }
      const workedMs = performance.now() - workedSince;
      if (workedMs < WORK_SLICE_MS) continue;
      await Bun.sleep(workedMs);
      workedSince = performance.now();
    }
    await print(counts);
  });

const print = (line: RehearsalLine): Promise<void> => printAnswer(JSON.stringify(line));
