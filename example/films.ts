import type { JsonObject, JsonPrimitive } from "../src/kernel/json.ts";

/** A row of the film collection in the npm package vega-datasets. */
export type MovieRow = Readonly<Record<string, JsonPrimitive | undefined>>;

/** Where npm puts it; the package exports no name for it. */
export const MOVIES_FILE = new URL("../node_modules/vega-datasets/data/movies.json", import.meta.url);

/** The collection ends here: what its two-digit years have put behind that was shown a hundred years sooner. */
const LAST_YEAR = 2011;
const YEARS_OF_A_CENTURY = 100;
const ID_DIGITS = 4;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const RELEASE_DATE = /^([A-Z][a-z]{2}) (\d{2}) (\d{4})$/;

/** `"Jun 12 1998"` as `1998-06-12`; null for anything else. */
export function parseReleaseDate(text: JsonPrimitive | undefined): string | null {
  const [, month = "", day, year] = RELEASE_DATE.exec(String(text)) ?? [];
  const monthIndex = MONTHS.indexOf(month);
  if (monthIndex === -1) return null;
  const printedYear = Number(year);
  const shownYear = printedYear > LAST_YEAR ? printedYear - YEARS_OF_A_CENTURY : printedYear;
  return `${shownYear}-${String(monthIndex + 1).padStart(2, "0")}-${day}`;
}

/** A title that is a number (`300`, `9`) is text all the same; one film of the collection has none. */
function titleOf(title: JsonPrimitive | undefined): string {
  return title === null || title === undefined ? "Untitled" : String(title);
}

/** `film-0001` and so on: importing the same collection again overwrites instead of doubling. `place` counts from 1. */
const idOf = (place: number): string => `film-${String(place).padStart(ID_DIGITS, "0")}`;

/** The row at `place` (from 1) under the names that the table `films` of platform.config.ts declares. */
export function filmOf(row: MovieRow, place: number): JsonObject {
  return {
    id: idOf(place),
    title: titleOf(row["Title"]),
    director: row["Director"] ?? null,
    distributor: row["Distributor"] ?? null,
    rating: row["MPAA Rating"] ?? null,
    genre: row["Major Genre"] ?? null,
    creativeType: row["Creative Type"] ?? null,
    source: row["Source"] ?? null,
    releaseDate: parseReleaseDate(row["Release Date"]),
    runningTime: row["Running Time min"] ?? null,
    budget: row["Production Budget"] ?? null,
    usGross: row["US Gross"] ?? null,
    worldwideGross: row["Worldwide Gross"] ?? null,
    dvdSales: row["US DVD Sales"] ?? null,
    imdbRating: row["IMDB Rating"] ?? null,
    imdbVotes: row["IMDB Votes"] ?? null,
    rottenTomatoes: row["Rotten Tomatoes Rating"] ?? null,
  };
}
