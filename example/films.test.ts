import { expect, test } from "bun:test";
import { filmOf, parseReleaseDate } from "../scripts/films.ts";
import { readFilms } from "./films.ts";

test("a release date from a two-digit year is in the century of the release", () => {
  expect(parseReleaseDate("Jun 12 1998")).toBe("1998-06-12");
  expect(parseReleaseDate("Dec 15 2039")).toBe("1939-12-15");
  expect(parseReleaseDate("Dec 23 2011")).toBe("2011-12-23");
  expect(parseReleaseDate("June 1998")).toBeNull();
  expect(parseReleaseDate(null)).toBeNull();
});

test("a title is text, also where the collection has a number or no title", () => {
  expect(filmOf({ Title: 300 }, 1)["title"]).toBe("300");
  expect(filmOf({ Title: null }, 2)["title"]).toBe("Untitled");
  expect(filmOf({ Title: "Wings", "Running Time min": 141 }, 3)).toMatchObject({
    id: "film-0003",
    title: "Wings",
    runningTime: 141,
  });
});

test("every film of the collection has a title and a date that exists", async () => {
  const films = await readFilms();
  expect(films).toHaveLength(3201);
  const wrong = films.filter(({ title, releaseDate }) => title === "" || Number.isNaN(Date.parse(String(releaseDate))));
  expect(wrong).toEqual([]);
  const years = films.map((film) => Number(String(film["releaseDate"]).slice(0, 4)));
  expect(Math.max(...years)).toBe(2011);
});
