import { fileURLToPath } from "node:url";
import type { JsonObject } from "../src/kernel/json/json.ts";

/** 3,201 films as records of the table `films` of platform.config.ts, one a line: see scripts/films.ts. */
export const FILMS_FILE = fileURLToPath(new URL("films.ndjson", import.meta.url));

/** In the order of the file. */
export async function readFilms(): Promise<JsonObject[]> {
  const lines = (await Bun.file(FILMS_FILE).text()).trimEnd().split("\n");
  // scripts/films.ts wrote them.
  return lines.map((line) => JSON.parse(line) as JsonObject);
}
