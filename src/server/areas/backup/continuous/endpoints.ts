import { Type } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, notFound } from "../../../../kernel/errors.ts";
import { isoTime } from "../../../../kernel/time/iso-datetime.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { Reply } from "../../../http/reply.ts";
import type { ContinuousBackup } from "./service.ts";

const TAG = "Administration";
const Time = Type.String({ format: "date-time" });

interface EndpointDeps {
  /** null: none is declared, or this is a drill. */
  backup: Pick<ContinuousBackup, "verify"> | null;
  isDrill: boolean;
  clock: Clock;
  /** Writes an entry of the audit log, and resolves when it is on disk. */
  audit: { record(change: { action: string; target: string; after?: unknown }): Promise<void> };
}

export function continuousEndpoints({ backup, isDrill, clock, audit }: EndpointDeps): readonly Endpoint[] {
  const verify = endpoint(
    "POST /api/admin/backups/continuous/verify",
    {
      tag: TAG,
      summary: "Verify the continuous backup",
      description:
        "Restores every database from the place into a scratch folder, as of a commit, and compares it with the live one, page by " +
        "page. `checks.continuous` of `GET /api/health?full` has the result. 404 without `backups.continuous`, 409 while one runs, " +
        "503 in a drill.",
      caller: "serviceKey",
      place: "core",
      answers: { 202: Type.Object({ startedAt: Time }, { description: "It goes on after the answer" }) },
      errors: [404, 409, 503],
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, ["backups", "*", "*", "write"]);
      query();
      if (isDrill) throw new AppError(503, "This server runs as a drill: it makes and verifies no backups");
      if (backup === null) throw notFound("The config declares no backups.continuous");
      backup.verify();
      await audit.record({ action: "backup.verify", target: "backups/continuous" });
      return new Reply(202, { startedAt: isoTime(clock.now()) });
    },
  );
  return [verify];
}
