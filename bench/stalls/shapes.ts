import { fill, JSON_HEADERS, SERVICE_HEADERS, type StallArea, send } from "./area.ts";
import type { Operation, OperationRequest } from "./measure.ts";

const T = "/api/db/shared/tables";
const ROWS = 1_000_000;
const FILES = 50;
const RECORDS_WITH_FILES = 200;
const CONDITIONS_MAX = 100;
const IDS_MAX = 1_000;
/** Records that a relation of `if` examines: somewhat less than it may. */
const EXAMINED = 9_000;

const CONFIG = `import { defineConfig, field, some } from "platform";

const anyone = { read: true, insert: true, update: true, delete: true } as const;
export default defineConfig({
  storage: { buckets: { files: {} } },
  databases: { shared: { tables: {
    rows: { schema: { n: { type: "integer" }, at: { type: "geo" } }, indexes: [{ fields: ["n"] }], access: anyone },
    links: {
      schema: { of: { type: "string" }, kind: { type: "string" } },
      indexes: [{ fields: ["of", "kind"] }, { fields: ["kind"] }],
      access: anyone,
    },
    tags: { schema: { name: { type: "string" } }, access: anyone },
    tagged: { schema: { tagIds: { type: "references", references: "tags", max: 50 } }, access: anyone },
    docs: { schema: { files: { type: "file", bucket: "files", many: ${FILES} } }, access: anyone },
    // Nobody is a member: each record of the page is asked about in vain.
    behind: {
      schema: { n: { type: "integer" } },
      access: { read: () => some("links", [["of", "==", field("id")], ["kind", "==", "member"]]) },
    },
  } } },
});
`;

const list = (table: string, query: Record<string, unknown>): OperationRequest => ({
  path: `${T}/${table}?${Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(typeof value === "string" ? value : JSON.stringify(value))}`)
    .join("&")}`,
});

/** Returns as many conditions as a filter may have, in groups within each other, of which none matches. */
function largestGroup(): unknown {
  const conditions = (count: number) => Array.from({ length: count }, (_, n) => [["n", "==", -1 - n]]);
  const inner = { or: conditions(CONDITIONS_MAX - 4) };
  return [{ not: [{ not: [{ and: [[inner]] }] }] }];
}

/** Returns a form with a record and its files, as browsers send it. */
function form(files: number, bytes: number): OperationRequest {
  const boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gW";
  const part = (head: string, content: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
  const content = "0123456789abcdef".repeat(bytes / 16);
  const parts = Array.from({ length: files }, (_, n) => part(`name="files"; filename="${n}.txt"`, content));
  return {
    method: "POST",
    path: `${T}/docs`,
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    body: `${part('name="record"', "{}")}${parts.join("")}--${boundary}--\r\n`,
  };
}

const related = (kind: string, more: unknown[] = []) => [
  { some: { table: "links", where: [["of", "==", { field: "id" }], ["kind", "==", kind], ...more] } },
];

async function prepare(server: Parameters<StallArea["prepare"]>[0]): Promise<readonly Operation[]> {
  await fill(server, `${T}/rows`, ROWS, (index) => ({
    id: `r${index}`,
    n: index,
    at: { lat: ((index * 7) % 1_700) / 10 - 85, lng: ((index * 13) % 3_590) / 10 - 179.5 },
  }));
  await fill(server, `${T}/links`, ROWS, (index) => ({ of: `r${index}`, kind: index % 2 === 0 ? "even" : "odd" }));
  await fill(server, `${T}/links`, EXAMINED, (index) => ({ of: `r${index}`, kind: "few" }));
  await fill(server, `${T}/behind`, 20_000, (index) => ({ id: `r${index}`, n: index }));
  await fill(server, `${T}/tags`, IDS_MAX, (index) => ({ id: `t${index}`, name: `Tag ${index}` }));
  const tagIds = (index: number) => Array.from({ length: 10 }, (_, n) => `t${(index * 10 + n) % IDS_MAX}`);
  await fill(server, `${T}/tagged`, 20_000, (index) => ({ tagIds: tagIds(index) }));
  const few = form(FILES, 32);
  for (let count = 0; count < RECORDS_WITH_FILES; count++) {
    const { path, headers = {}, body = "" } = few;
    const response = await fetch(server.url + path, { method: "POST", headers, body: String(body) });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  }
  const { id } = (await send(server, "POST", `${T}/rows`, { id: "changed", n: -5 })) as { id: string };
  const patch = (filter: unknown): OperationRequest => ({
    method: "PATCH",
    path: `${T}/rows/${id}?if=${encodeURIComponent(JSON.stringify(filter))}`,
    headers: JSON_HEADERS,
    body: JSON.stringify({ n: -5 }),
  });
  const world = { south: -90, west: -180, north: 90, east: 180 };
  const half = { lat: 0, lng: 0, meters: 10_000_000 };
  return [
    {
      name: "a filter of 100 conditions in groups, over 1,000,000 records",
      requests: [list("rows", { filter: largestGroup() })],
    },
    {
      name: "a relation that 1,000,000 records ask in vain",
      requests: [list("rows", { filter: related("neither"), limit: 20 })],
    },
    {
      name: "a relation over half of 1,000,000 records, with its total",
      requests: [list("rows", { filter: related("even"), sort: "n:desc", limit: 1_000 })],
    },
    {
      name: "a rule's relation that 20,000 records meet in vain",
      requests: [list("behind", { limit: 1_000, sort: "n" })],
    },
    {
      name: "`if` with a relation that examines 9,000 records",
      requests: [
        patch([
          {
            none: {
              table: "links",
              where: [
                ["kind", "==", "few"],
                ["of", "contains", "nothing"],
              ],
            },
          },
        ]),
      ],
    },
    {
      name: "a distance to the far side of 1,000,000 points",
      requests: [list("rows", { near: "at:89.9:-179.9", limit: 1_000 })],
    },
    {
      name: "the last page by distance of 1,000,000 points",
      requests: [list("rows", { near: "at:0:0", limit: 1_000, offset: "990000" })],
    },
    {
      name: "areas that hold all of 1,000,000 points",
      requests: [
        list("rows", { filter: [["at", "inBox", world]], limit: 1_000 }),
        list("rows", { filter: [["at", "within", half]], sort: "n:desc", limit: 1_000 }),
      ],
    },
    {
      name: "`hasAny` and `hasAll` of 1,000 ids",
      requests: ["hasAny", "hasAll"].map((operator) =>
        list("tagged", {
          filter: [["tagIds", operator, Array.from({ length: IDS_MAX }, (_, n) => `t${n}`)]],
          limit: 1_000,
        }),
      ),
    },
    {
      name: "several references of 1,000 records expanded",
      requests: [list("tagged", { expand: "tagIds", limit: 1_000 })],
    },
    { name: `a record with ${FILES} files of 16 KiB`, requests: [form(FILES, 16 * 1024)] },
    {
      name: `urls signed for ${RECORDS_WITH_FILES * FILES} files`,
      requests: [{ ...list("docs", { limit: RECORDS_WITH_FILES, signFiles: "600" }), headers: SERVICE_HEADERS }],
    },
  ];
}

export const shapeStalls: StallArea = { name: "shapes of data", config: CONFIG, prepare };
