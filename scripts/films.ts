import { FILMS_FILE } from "../example/films.ts";
import type { JsonObject, JsonPrimitive } from "../src/kernel/json/json.ts";

// Writes example/films.ndjson of the film collection in the npm package vega-datasets (3.2.1):
// `npm pack vega-datasets@3.2.1`, unpack it, and `bun scripts/films.ts package/data/movies.json`.

/** A row of the film collection. */
type MovieRow = Readonly<Record<string, JsonPrimitive | undefined>>;

/** The last year of the collection. A later year comes from a two-digit year, and is a century too late. */
const LAST_YEAR = 2011;
const YEARS_OF_A_CENTURY = 100;
const ID_DIGITS = 4;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const RELEASE_DATE = /^([A-Z][a-z]{2}) (\d{2}) (\d{4})$/;

/** Parses a date: `"Jun 12 1998"` becomes `1998-06-12`; null for anything else. */
export function parseReleaseDate(text: JsonPrimitive | undefined): string | null {
  const [, month = "", day, year] = RELEASE_DATE.exec(String(text)) ?? [];
  const monthIndex = MONTHS.indexOf(month);
  if (monthIndex === -1) return null;
  const givenYear = Number(year);
  const releaseYear = givenYear > LAST_YEAR ? givenYear - YEARS_OF_A_CENTURY : givenYear;
  return `${releaseYear}-${String(monthIndex + 1).padStart(2, "0")}-${day}`;
}

/** Returns the title. Numbers (`300`, `9`) become text; one film of the collection has no title. */
function titleOf(title: JsonPrimitive | undefined): string {
  return title === null || title === undefined ? "Untitled" : String(title);
}

/** Returns a stable id, such as `film-0001`: a second import of the collection updates its films. `place` counts from 1. */
const idOf = (place: number): string => `film-${String(place).padStart(ID_DIGITS, "0")}`;

/** Converts the row at `place` (from 1) to a record of the table `films` of platform.config.ts. */
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

if (import.meta.main) {
  const [source = ""] = process.argv.slice(2);
  const movies: MovieRow[] = await Bun.file(source).json();
  const films = movies.map((row, index) => filmOf(row, index + 1));
  const present = (film: JsonObject) => Object.fromEntries(Object.entries(film).filter(([, value]) => value !== null));
  await Bun.write(FILMS_FILE, films.map((film) => `${JSON.stringify(present(film))}\n`).join(""));
}
