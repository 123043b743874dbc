import { serveJobs } from "../../../db/processes/program.ts";
import { sendText } from "../../../db/processes/text-answer.ts";
import { QueryError, type QueryRequest, type TablesRequest } from "../query.ts";
import { executeQuery, openConnection } from "./execute.ts";
import { ONLY_QUERIES } from "./judge.ts";
import { receivedQuery, sentFailure } from "./received.ts";

/** Starts the program that queries tables of namespaces: each query on a read-only connection of its own. */
export function start(): void {
  serveJobs<TablesRequest>({
    async run({ path, tables, query: request }, context) {
      const query = receivedQuery(request, context);
      const text = await queried({ path, tables }, query);
      return sendText(text, context, { note: query.sql });
    },
    failureOf: sentFailure,
  });
}

/** Runs one query. The connection is closed before the answer waits for room, so that the file's log is not kept from restarting. */
async function queried({ path, tables }: Pick<TablesRequest, "path" | "tables">, query: QueryRequest): Promise<string> {
  const connection = openConnection(path, "reader", tables);
  try {
    const text = await executeQuery(connection, query, () => Promise.reject(new Error("a reader commits nothing")));
    // Null where a statement needs a writer, such as VACUUM, and has not run.
    if (text === null) throw new QueryError({ status: 400, message: ONLY_QUERIES });
    return text;
  } finally {
    connection.database.close();
  }
}
