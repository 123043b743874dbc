import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { platformCommand, temporaryDirectory, testEnvironment } from "../../support/index.ts";
import { type Postgres, startPostgres } from "../../support/postgres.ts";

// Files that other programs have written: a CSV by the real PostgreSQL, files in a folder, names of one's own.

setDefaultTimeout(120_000);

const CONFIG = `import { defineConfig } from "platform";
export default defineConfig({
  storage: { buckets: { posters: {} } },
  databases: { shared: { tables: {
    people: { schema: { name: { type: "string" } } },
    films: { schema: {
      title: { type: "string", required: true }, seen: { type: "boolean" }, premiere: { type: "datetime" }, day: { type: "date" },
      tags: { type: "json" }, numbers: { type: "json" }, cast: { type: "references", references: "people" },
      rating: { type: "number" }, note: { type: "text" },
      poster: { type: "file", bucket: "posters" }, stills: { type: "file", bucket: "posters", many: 3 },
    } },
  } } },
});
`;

let postgres: Postgres;
let folder: string;
beforeAll(async () => {
  postgres = await startPostgres();
  folder = temporaryDirectory();
  writeFileSync(join(folder, "platform.config.ts"), CONFIG);
  expect(await run("import", "shared/people", write("people.ndjson", '{"id":"p1"}\n{"id":"p,2"}\n'))).toMatchObject({
    code: 0,
  });
});
afterAll(() => postgres?.stop());

const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return name;
};

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const options = { cwd: folder, env: testEnvironment(), stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const;
  const child = Bun.spawn([...platformCommand(), ...args], options);
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

const film = async (id: string): Promise<Record<string, unknown>> => {
  const { stdout } = await run("export", "shared/films");
  const records = stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  return records.find((record) => record.id === id) ?? {};
};

test("[CL490] a CSV that PostgreSQL has written: its booleans, instants, days, arrays and nulls", async () => {
  const out = temporaryDirectory();
  chmodSync(out, 0o777);
  const file = join(out, "films.csv");
  await postgres
    .open()
    .unsafe(
      `SET timezone = 'Europe/Vienna';
       CREATE TABLE films (film_id text, title text, seen bool, premiere timestamptz, at timestamp, tags text[], numbers numeric[], cast_ids text[], note text, junk int);
       INSERT INTO films VALUES
         ('a', 'Heat', true, '1995-12-06 20:00:00.123456+01', '1995-12-15', '{a,"b c","d\\"e\\\\",NULL,"NULL"}', '{1,2.5,{1,2}}'::text::numeric[], '{p1,"p,2"}', '\\N', 1),
         ('b', '\\N is a text', false, NULL, NULL, '{}', NULL, NULL, '', NULL);
       COPY films TO '${file}' WITH (FORMAT csv, HEADER, NULL '\\N')`.replace(
        "'{1,2.5,{1,2}}'::text::numeric[]",
        "'{{1,2.5},{3,NULL}}'",
      ),
    )
    .simple();
  writeFileSync(join(folder, "films.csv"), readFileSync(file));
  const map = "film_id=id,at=day,cast_ids=cast,junk=";
  expect(await run("import", "shared/films", "films.csv", "--map", map, "--null", "\\N")).toMatchObject({
    code: 0,
    stdout: "imported 2 records into shared/films\n",
  });
  expect(await film("a")).toMatchObject({
    ...{ title: "Heat", seen: true, premiere: "1995-12-06T19:00:00.123Z", day: "1995-12-15", cast: ["p1", "p,2"] },
    // PostgreSQL quotes a text that is written as its null is.
    ...{
      tags: ["a", "b c", 'd"e\\', null, "NULL"],
      numbers: [
        [1, 2.5],
        [3, null],
      ],
      note: "\\N",
    },
  });
  expect(await film("b")).toMatchObject({
    ...{
      title: "\\N is a text",
      seen: false,
      premiere: null,
      day: null,
      tags: {},
      numbers: null,
      cast: [],
      note: null,
    },
  });
});

test("[CL491] --map renames and drops members of NDJSON and JSON too, and names what is wrong", async () => {
  write("a.ndjson", '{"key":"n1","Title":"One","premiere":"2024-05-06 04:00:00+02","x":{"y":1}}\n');
  expect((await run("import", "shared/films", "a.ndjson", "--map", "key=id, Title=title,x=")).code).toBe(0);
  expect(await film("n1")).toMatchObject({ title: "One", premiere: "2024-05-06T02:00:00.000Z" });
  const wrong: [string[], number, string][] = [
    [["--map", "title"], 2, '--map must be names such as "Column=field,Other=", got "title"'],
    [["--map", "a=b,a=c"], 2, "--map names a column twice"],
    [["--map", "nothing=title"], 1, '--map names "nothing", which no column has'],
    [["--map", "other=title"], 1, "with --map the first line names the field title twice"],
  ];
  write("b.csv", "title,other\nA,B\n");
  for (const [options, code, words] of wrong) {
    const ended = await run("import", "shared/films", "b.csv", ...options);
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(words)]);
  }
  write("c.ndjson", '{"title":"A","other":"B"}\n');
  expect((await run("import", "shared/films", "c.ndjson", "--map", "other=title")).stderr).toContain(
    "line 1: two members are one field",
  );
});

test("[CL491] --null is for cells that are not quoted", async () => {
  write("n.csv", 'id,title,rating,note\nq1,"n/a",NULL,n/a\n');
  expect((await run("import", "shared/films", "n.csv", "--null", "NULL,n/a")).code).toBe(0);
  expect(await film("q1")).toMatchObject({ title: "n/a", rating: null, note: null });
});

test("[CL492] files come by their paths in a folder, and from nowhere else", async () => {
  const files = join(folder, "files");
  mkdirSync(join(files, "posters"), { recursive: true });
  write("files/posters/heat.png", "png");
  write("files/one.txt", "one");
  write("secret.txt", "secret");
  symlinkSync(join(folder, "secret.txt"), join(files, "link.txt"));
  write("f.csv", 'id,title,poster,stills\nf1,Heat,posters/heat.png,"[""one.txt"",""posters/heat.png""]"\n');
  expect((await run("import", "shared/films", "f.csv", "--files", "files")).code).toBe(0);
  expect(await film("f1")).toMatchObject({
    poster: { name: "heat.png", type: "image/png", size: 3 },
    stills: [{ name: "one.txt" }, { name: "heat.png" }],
  });
  for (const path of ["../secret.txt", "link.txt", join(folder, "secret.txt"), "missing.txt"]) {
    write("g.csv", `id,title,poster\ng1,Heat,${path}\n`);
    const { code, stderr } = await run("import", "shared/films", "g.csv", "--files", "files");
    expect([code, stderr]).toEqual([1, expect.stringContaining(`line 2: the file "${path}" is`)]);
  }
});
