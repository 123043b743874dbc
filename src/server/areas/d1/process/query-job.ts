import { type JobContext, serveJobs } from "../../../db/processes/program.ts";
import { sendText } from "../../../db/processes/text-answer.ts";
import type { CommitMark, GateQuestion } from "../../../db/writer/commit-gate.ts";
import { hasLargeLog } from "../database-file.ts";
import { EscapeError, type ProgramRequest, type ProgramSettings, type QueryRequest } from "../query.ts";
import { executeQuery, moveLog, openConnection, type QueryConnection } from "./execute.ts";
import { receivedQuery, sentFailure } from "./received.ts";

/** Starts the program of a query process: one connection to one database, for reads or for writes. */
export function start(settings: unknown): void {
  const { path, role } = settings as ProgramSettings; // What service.ts passes.
  let connection: QueryConnection | null = null;
  const open = (): QueryConnection => {
    connection ??= openConnection(path, role);
    return connection;
  };
  const move = async ({ ask }: JobContext): Promise<void> => {
    const { database } = open();
    await ask("checkpoint" satisfies GateQuestion);
    moveLog(database, path);
  };
  const execute = async (request: QueryRequest, context: JobContext): Promise<string | null> => {
    // A write that was ended has left its pages in the log, and no commit would remove them.
    if (role === "writer" && hasLargeLog(path)) await move(context);
    const opened = open();
    try {
      // The answer of the file's gate.
      const nextMark = () => context.ask("commit" satisfies GateQuestion) as Promise<CommitMark>;
      return await executeQuery(opened, request, nextMark);
    } catch (cause) {
      if (cause instanceof EscapeError) {
        opened.database.close();
        connection = null;
      }
      throw cause;
    }
  };
  serveJobs<ProgramRequest>({
    async run(request, context) {
      if (request.kind === "settle") {
        await move(context);
        return null;
      }
      const query = receivedQuery(request, context);
      const text = await execute(query, context);
      // For the audit log: the server has not parsed the body.
      const note = request.kind === "body" && role === "writer" ? query.sql : null;
      return text === null ? null : sendText(text, context, { note });
    },
    failureOf: sentFailure,
  });
}
