import { fileURLToPath } from "node:url";
import type { JsonObject } from "../src/kernel/json/json.ts";

/** File of 3,201 films, records of the table `films` of platform.config.ts, one per line: see scripts/films.ts. */
export const FILMS_FILE = fileURLToPath(new URL("films.ndjson", import.meta.url));

/** Reads the films in the order of the file. */
export async function readFilms(): Promise<JsonObject[]> {
  const lines = (await Bun.file(FILMS_FILE).text()).trimEnd().split("\n");
  // scripts/films.ts writes this format.
  return lines.map((line) => JSON.parse(line) as JsonObject);
}
