// What TypeScript makes of a client: checked by `tsc`, never run. [TC2]

import {
  allOf,
  anyOf,
  createClient,
  deleteField,
  field,
  type InsertOf,
  increment,
  none,
  not,
  type RecordFile,
  type RecordOf,
  some,
} from "../../src/client/index.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import type config from "./club-config.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

const client = createClient<typeof config>({ url: "http://127.0.0.1:8787" });
const films = client.db("shared").table("films");

export type Film = RecordOf<typeof config, "shared", "films">;
holds<Equal<Film["genre"], "Comedy" | "Drama" | "War" | null>>();
holds<Equal<Film["title"], string>>();

export async function reads() {
  const { items } = await films
    .where("year", ">", 1990)
    .where("genre", "in", ["Drama", null])
    .sort("year", "desc")
    .list();
  holds<Equal<(typeof items)[number], Film>>();
  const one = await films.where("extra.city", "==", "Oslo").orWhere("title", "startsWith", "A").first();
  holds<Equal<typeof one, Film | null>>();
  const either = films.where(anyOf([["genre", "==", "Comedy"]], [["year", ">", 1990], not([["rating", "==", null]])]));
  holds<Equal<Awaited<ReturnType<typeof either.first>>, Film | null>>();
  films.where([["title", "==", "A"], allOf([["year", ">", 1990]], anyOf([["genre", "in", ["War"]]]))]);
  // @ts-expect-error: no such field
  films.where(anyOf([["titel", "==", "A"]]));
  // @ts-expect-error: not one of the genres
  films.where([not([["genre", "==", "Western"]])]);
  const reviewed = films.where([
    ["year", ">", 1990],
    some("reviews", [
      ["filmId", "==", field("id")],
      ["text", "contains", "good"],
      none("people", [
        ["id", "==", field("authorId")],
        anyOf([["name", "==", "Ann"]], [["createdAt", ">", field("createdAt")]]),
      ]),
    ]),
  ]);
  holds<Equal<Awaited<ReturnType<typeof reviewed.first>>, Film | null>>();
  films.where(none("people", [["id", "==", field("directorId")]]));
  films.where(anyOf([some("reviews", [["filmId", "==", field("id")]])], [["genre", "==", "War"]])).live();
  // @ts-expect-error: no such table
  films.where(some("critics", [["filmId", "==", field("id")]]));
  // @ts-expect-error: no such field of reviews
  films.where(some("reviews", [["film", "==", field("id")]]));
  // @ts-expect-error: no such field of films
  films.where(some("reviews", [["filmId", "==", field("filmId")]]));
  // @ts-expect-error: a number is no text
  films.where(some("reviews", [["filmId", "==", field("year")]]));
  // @ts-expect-error: not one of the genres
  films.where(not([some("films", [["genre", "==", "Western"]])]));
  // @ts-expect-error: outside of a relation there is no outer record
  films.where([["title", "==", field("id")]]);
  // @ts-expect-error: no such field
  films.where("titel", "==", "A");
  // @ts-expect-error: a number is not searched for text
  films.where("year", "contains", "19");
  // @ts-expect-error: not one of the genres
  films.where("genre", "==", "Western");
  // @ts-expect-error: no such table
  client.db("shared").table("film");
  // @ts-expect-error: no such namespace
  client.db("share");

  const page = await films.where("year", ">", 1990).page(2, { perPage: 20 });
  holds<Equal<(typeof page.items)[number], Film>>();
  holds<Equal<typeof page.page, number>>();
  // @ts-expect-error: the size of a page is perPage
  await films.page(1, { limit: 20 });
  const few = await films.fields("title", "year").list();
  holds<Equal<(typeof few.items)[number], { id: string; title: string; year: number | null }>>();
  // @ts-expect-error: not one of the fields
  few.items[0]?.genre;
}

export async function searches() {
  const search = films.fields("title").search("blade", { highlightPre: "[" });
  type Item = { id: string; title: string } & { highlights: { [field: string]: string } };
  const { items, total, hasMore } = await search;
  holds<Equal<(typeof items)[number], Item>>();
  holds<Equal<[typeof total, typeof hasMore], [number | null, boolean]>>();
  const live = search.live();
  holds<Equal<(typeof live.items)[number], Item>>();
  const found = films.expand("directorId").search("blade").live();
  const director: string | undefined = found.items[0]?.expand.directorId?.name;
  const mark: string | undefined = found.items[0]?.highlights["title"];
  // @ts-expect-error: a search has no cursor
  (await search).cursor;
  // @ts-expect-error: not one of the fields
  live.items[0]?.genre;
  return [director, mark];
}

export async function expands() {
  const { items } = await films.expand("directorId", "reviews(filmId).authorId").list();
  const [film] = items;
  if (film === undefined) return;
  holds<Equal<typeof film.title, string>>();
  const director: string | undefined = film.expand.directorId?.name;
  const author: string | undefined = film.expand["reviews(filmId)"].items[0]?.expand.authorId?.name;
  // @ts-expect-error: not expanded
  film.expand["people(id)"];
  // @ts-expect-error: no such reference
  films.expand("title");
  // @ts-expect-error: no such reference of reviews
  films.expand("reviews(filmId).text");
  const one = await films.get("1", { fields: ["title"], expand: ["directorId"] });
  const name: string | undefined = one?.expand.directorId?.name;
  // @ts-expect-error: not one of the fields
  one?.year;
  return [director, author, name];
}

export async function writes() {
  const insert: InsertOf<typeof config, "shared", "films"> = { title: "A" };
  const film = await films.insert(insert);
  holds<Equal<typeof film, Film>>();
  await films.insert({ id: "1", title: "A", genre: "War", extra: { a: [1] }, year: null });
  // @ts-expect-error: title is required
  await films.insert({ year: 1999 });
  // @ts-expect-error: the server sets createdAt
  await films.insert({ title: "A", createdAt: "2020-01-01" });
  // @ts-expect-error: a text is not a number
  await films.insert({ title: "A", year: "1999" });
  await films.update("1", { year: increment(1), rating: null, extra: deleteField() }, { if: [["year", "==", 1999]] });
  await films.update("1", film);
  // @ts-expect-error: title is required
  await films.update("1", { title: null });
  // @ts-expect-error: title is required
  await films.update("1", { title: deleteField() });
  // @ts-expect-error: a text cannot be incremented
  await films.update("1", { title: increment(1) });
  await films.upsert({ title: "A" }, { conflictTarget: "title" });
  // @ts-expect-error: nothing says which record it is
  await films.upsert({ title: "A" });
  await films.where("year", "<", 1950).update({ rating: 1 });

  const [made, gone] = await client.db("shared").transaction([
    { table: "people", action: "insert", data: { name: "Ann" } },
    { table: "films", action: "delete", id: "1" },
  ]);
  holds<Equal<typeof made.name, string>>();
  holds<Equal<typeof gone, { id: string }>>();
  // @ts-expect-error: not a field of people
  await client.db("shared").transaction([{ table: "people", action: "insert", data: { title: "A" } }]);
}

export async function several() {
  const evenings = client.db("shared").table("evenings");
  await evenings.insert({ guestIds: ["ann"] });
  // @ts-expect-error: guestIds is required
  await evenings.insert({ filmIds: ["1"] });
  // @ts-expect-error: several references are never null
  await evenings.insert({ guestIds: ["ann"], filmIds: null });
  await evenings.update("1", { filmIds: { $op: "add", value: "1" }, guestIds: { $op: "remove", value: "ann" } });
  // @ts-expect-error: an id is a text
  await evenings.update("1", { filmIds: { $op: "add", value: 1 } });
  // @ts-expect-error: a name is one text
  await evenings.update("1", { name: { $op: "add", value: "a" } });
  const query = evenings.where("filmIds", "has", "1").where("guestIds", "hasAll", ["ann", "bob"]);
  evenings.where(anyOf([["filmIds", "hasAny", ["1", "2"]]], [["name", "==", "Noir"]]));
  // @ts-expect-error: only ids compare several references
  evenings.where("filmIds", "==", "1");
  // @ts-expect-error: a list of ids
  evenings.where("filmIds", "hasAny", "1");
  // @ts-expect-error: one text has no ids
  evenings.where("name", "has", "1");
  // @ts-expect-error: several references are no group
  await evenings.aggregate({ groupBy: ["filmIds"] });
  const { items } = await query.expand("filmIds.directorId").list();
  const [evening] = items;
  if (evening === undefined) return;
  holds<Equal<typeof evening.filmIds, string[]>>();
  const titles: string[] = evening.expand.filmIds.map((film) => film.title);
  const directors: (string | undefined)[] = evening.expand.filmIds.map((film) => film.expand.directorId?.name);
  const back = await films.expand("evenings(filmIds)").first();
  const names: (string | null)[] | undefined = back?.expand["evenings(filmIds)"].items.map(({ name }) => name);
  return [titles, directors, names];
}

export async function aggregates() {
  const groups = await films.aggregate({ select: ["count()", "avg(rating)"], groupBy: ["genre", "released:year"] });
  const [group] = groups;
  holds<
    Equal<
      NonNullable<typeof group>,
      { "count()": number; "avg(rating)": number | null; genre: Film["genre"]; "released:year": string | null }
    >
  >();
  // @ts-expect-error: a text has no sum
  await films.aggregate({ select: ["sum(title)"] });
}

export async function untyped() {
  const any = createClient({ url: "http://127.0.0.1:8787" });
  const { items } = await any.db("shared").table("films").where("title", "==", "A").sort("year").list();
  const title: JsonValue | undefined = items[0]?.["title"];
  await any.db("shared").table("films").insert({ title: "A" });
  const drafts = await client.db("shared").table("drafts").where("anything.at.all", "==", 1).list();
  const text: JsonValue | undefined = drafts.items[0]?.["text"];
  return [title, text];
}

export async function signIns() {
  const result = await client.auth.signIn({ email: "a@example.com", password: "secret" });
  if (result.mfa === undefined) return result.user.email;
  return (await result.mfa.verify("123456")).user.email;
}

export async function files(file: File, blob: Blob) {
  const posters = client.db("shared").table("posters");
  type Poster = RecordOf<typeof config, "shared", "posters">;
  holds<Equal<Poster["image"], RecordFile>>();
  holds<Equal<Poster["back"], RecordFile | null>>();
  holds<Equal<Poster["sketches"], RecordFile[]>>();
  type NewPoster = InsertOf<typeof config, "shared", "posters">;
  const given: NewPoster = { image: file, back: null, sketches: [file, blob] };
  const poster = await posters.insert(given, { onProgress: ({ loaded, total }) => loaded / total });
  holds<Equal<typeof poster, Poster>>();
  await posters.insert({ image: blob, sketches: file });
  // @ts-expect-error: a required file
  await posters.insert({ title: "A" });
  // @ts-expect-error: an insert takes no stored files
  await posters.insert({ image: poster.image });
  // @ts-expect-error: no path, but a file
  await posters.insert({ image: "a.png" });
  // @ts-expect-error: one file
  await posters.insert({ image: [file] });
  const { signal } = new AbortController();
  await posters.update(poster.id, { image: file, back: null, sketches: [...poster.sketches, file] }, { signal });
  await posters.update(poster.id, { image: poster.image, sketches: [{ id: "a" }] });
  await posters.update(poster.id, { back: deleteField(), sketches: null });
  // @ts-expect-error: a required file is not removed
  await posters.update(poster.id, { image: null });
  await posters.upsert({ id: "p", image: poster.image, sketches: [...poster.sketches, blob] }, { signal });
  // @ts-expect-error: a batch takes no files
  await posters.batch({ inserts: [{ image: file }] });
  await posters.batch({ updates: [{ id: poster.id, data: { back: poster.back, sketches: [] } }] });
  // @ts-expect-error: files are for single records
  await posters.where("title", "==", "A").update({ back: file });
  const { items } = await posters.list({ signFiles: 600 });
  holds<Equal<(typeof items)[number], Poster>>();
  await posters.get(poster.id, { signFiles: 600 });
}
