import type { BunPlugin } from "bun";
import { Read, Write } from "../src/server/db/query.ts";

/**
 * Replaces the modules of `src/server/areas/AREA/statements` by the SQL that drizzle builds from them, so that the executable
 * neither contains nor evaluates drizzle: importing it takes some 4 ms of a start and 1.4 MB of memory.
 */
export const queryTexts: BunPlugin = {
  name: "query-texts",
  setup(build) {
    build.onLoad(
      { filter: /[\\/]src[\\/]server[\\/]areas[\\/]\w+[\\/]statements[\\/][^\\/]+(?<!\.test)\.ts$/ },
      async ({ path }) => {
        const queries: Record<string, unknown> = await import(path);
        return { loader: "ts", contents: sourceOf(path, queries) };
      },
    );
  },
};

function sourceOf(path: string, queries: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(queries).map(([name, query]) => {
    const kind = query instanceof Read ? "Read" : query instanceof Write ? "Write" : null;
    if (kind === null)
      throw new Error(`${path} exports ${name}, which is no query: a module of statements has nothing else`);
    return `export const ${name} = new ${kind}(() => (${JSON.stringify((query as Read<unknown, unknown>).text)}));`;
  });
  return ['import { Read, Write } from "../../../db/query.ts";', ...lines].join("\n");
}
