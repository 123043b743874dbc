import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import {
  type Answer,
  type HttpClient,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";
import { type Random, random, testSeed } from "../../support/random.ts";
import { path, upload } from "../storage/storage-support.ts";

// Every way to a file allows exactly the same: random bucket rules, files and callers, and an oracle. A new way is a new
// entry in READS (does this caller get the file?) or CHANGES (is the file another one afterwards?).

const SEED = testSeed(20_264);
const ROUNDS = Number(process.env["PLATFORM_FUZZ_ROUNDS"] ?? 1);
const BUCKETS = 12 * ROUNDS;
const ACTIONS = ["read", "write", "delete"] as const;
type Action = (typeof ACTIONS)[number];

interface File {
  key: string;
  /** undefined: there is none yet. */
  uploadedBy: string | undefined;
}

interface Rule {
  source: string;
  looksAtFile: boolean;
  says(caller: string | null, file: File): boolean;
}

interface Caller {
  name: string;
  client: HttpClient;
  id: string | null;
  scopes: readonly Action[] | null;
}

interface Bucket {
  name: string;
  rules: Record<Action, Rule>;
  files: File[];
}

function randomRule(r: Random): Rule {
  const isByFile = r.chance(0.6);
  const odd = { source: r.pick(['"yes"', "1", "null", "[]", "({ allow: true })"]), says: () => false };
  const plain: readonly Omit<Rule, "looksAtFile">[] = [
    { source: "true", says: () => true },
    { source: "auth !== null", says: (caller) => caller !== null },
    odd,
    { source: '(() => { throw new Error("a rule of the test throws"); })()', says: () => false },
  ];
  const byFile: readonly Omit<Rule, "looksAtFile">[] = [
    odd,
    { source: "file.key < 'm'", says: (_caller, { key }) => key < "m" },
    { source: "file.uploadedBy === auth?.id", says: (caller, { uploadedBy }) => uploadedBy === (caller ?? undefined) },
    {
      source: "file.uploadedBy === undefined || auth === null",
      says: (caller, { uploadedBy }) => uploadedBy === undefined || caller === null,
    },
  ];
  const { source, says } = r.pick(isByFile ? byFile : plain);
  // The last three have fewer than two parameters by their `length`, and look at the file all the same.
  const parameters = isByFile
    ? r.pick(["auth, file", "auth, file", "auth, file = null", "...both", "auth, ...rest"])
    : "auth";
  const looksAtFile = parameters === "auth, file" || source.includes("file.");
  const isAsync = r.chance(0.4);
  const named = `${parameters === "...both" ? "const [auth, file] = both; " : ""}${parameters === "auth, ...rest" ? "const [file] = rest; " : ""}`;
  const body = `{ ${named}${isAsync ? "await Bun.sleep(0); " : ""}return ${source}; }`;
  return { source: `${isAsync ? "async " : ""}(${parameters}) => ${body}`, looksAtFile, says };
}

const CONTENT = "what was there before";
const CHANGED = "what came instead";
/** The smallest picture: a GIF of one pixel. */
const GIF = Uint8Array.from(atob("R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw=="), (one) => one.charCodeAt(0));

let platform: TestPlatform;
let buckets: Bucket[];
let callers: Caller[];
const r = random(SEED);

beforeAll(async () => {
  buckets = Array.from({ length: BUCKETS }, (_, index) => ({
    name: `b${index}`,
    rules: { read: randomRule(r), write: randomRule(r), delete: randomRule(r) },
    files: [],
  }));
  const keys = ACTIONS.map(
    (action) => `${action}: { key: "${keyOf(action)}", scopes: ["storage:bucket:*:${action}"] }`,
  );
  const configWith = (
    access: (bucket: Bucket) => string,
  ) => `{ serviceKeys: { ${keys.join(", ")} }, storage: { buckets: {
    ${buckets.map((bucket) => `${bucket.name}: { thumbs: ["8x8"], access: { ${access(bucket)} } }`).join(",\n")} } } }`;
  // Who uploaded a file is for users to say: they do it while they may.
  platform = await testPlatform({ config: configWith(() => "write: true") });
  const people = [await signIn(platform), await signIn(platform)] as const;
  callers = [
    { name: "nobody", client: platform, id: null, scopes: null },
    ...people.map((one, index) => ({ name: `user ${index}`, client: one, id: one.id, scopes: null })),
    { name: "root", client: platform.service, id: null, scopes: ACTIONS },
    ...ACTIONS.map((action) => ({
      ...{ name: `only ${action}`, client: platform.withKey(keyOf(action)), id: null },
      scopes: [action],
    })),
  ];
  for (const bucket of buckets) await fill(bucket, people);
  await platform.restart({
    config: configWith(({ rules }) => ACTIONS.map((action) => `${action}: ${rules[action].source}`).join(", ")),
  });
});
afterAll(() => platform.stop());

const keyOf = (action: Action): string => `key-only-${action}-0123456789abcdef`;

/** Files for reading, and one for each change that each caller will try. */
async function fill(bucket: Bucket, people: readonly SignedIn[]): Promise<void> {
  const own = Array.from({ length: 6 }, (_, index) => `${r.pick(["a", "z"])}/${index}.gif`);
  const tried = callers.flatMap((caller) => CHANGES.map((change) => keyFor(caller, change)));
  await Promise.all(
    [...own, ...tried].map(async (key) => {
      const by = r.pick(people);
      const content = key.endsWith(".gif") ? GIF : CONTENT;
      expect((await upload(by, bucket.name, key, content, { type: "image/gif" })).status).toBe(201);
      bucket.files.push({ key, uploadedBy: by.id });
    }),
  );
  bucket.files.sort((a, b) => (a.key < b.key ? -1 : 1));
}

const keyFor = (caller: Caller, change: { name: string }): string =>
  `${change.name.length % 2 === 0 ? "a" : "z"}/${caller.name}/${change.name}`;

const may = ({ rules }: Bucket, { scopes, id }: Caller, action: Action, file: File): boolean =>
  scopes === null ? rules[action].says(id, file) : scopes.includes(action);
const isNobody = ({ scopes, id }: Caller): boolean => scopes === null && id === null;

const post = async (client: HttpClient, to: string, body: JsonObject) => client.post<JsonObject>(to, body);
const relative = (url: unknown): string => new URL(String(url)).pathname + new URL(String(url)).search;
/** The content behind a signed URL, which anybody may ask. */
const behind = async (url: unknown) => (await platform.fetch(relative(url))).status;

/** Each gives the status that says whether the caller may read. `isOpen`: also asked without credentials. */
const READS: readonly {
  name: string;
  isOpen: boolean;
  run(client: HttpClient, bucket: string, key: string): Promise<number>;
}[] = [
  { name: "GET", isOpen: true, run: async (client, bucket, key) => (await client.fetch(path(bucket, key))).status },
  { name: "HEAD", isOpen: true, run: async (client, bucket, key) => (await client.head(path(bucket, key))).status },
  {
    name: "a part",
    isOpen: true,
    run: async (client, bucket, key) => {
      const { status } = await client.fetch(path(bucket, key), { headers: { range: "bytes=0-2" } });
      return status === 206 ? 200 : status;
    },
  },
  {
    name: "a thumbnail",
    isOpen: true,
    run: async (client, bucket, key) => (await client.fetch(`${path(bucket, key)}?thumb=8x8`)).status,
  },
  {
    name: "metadata",
    isOpen: false,
    run: async (client, bucket, key) => (await client.get(`${path(bucket, key)}/metadata`)).status,
  },
  {
    name: "signed-url",
    isOpen: false,
    run: async (client, bucket, key) => {
      const { status, body } = await post(client, `/api/storage/${bucket}/signed-url`, { key });
      return status === 200 ? behind(body["url"]) : status;
    },
  },
  {
    name: "signed-urls",
    isOpen: false,
    run: async (client, bucket, key) => {
      const answer = await client.post<{ urls: { url: string }[] }>(`/api/storage/${bucket}/signed-urls`, {
        keys: [key],
      });
      return answer.status === 200 ? behind(answer.body.urls[0]?.url) : answer.status;
    },
  },
];

test(`[ST40, ST41, ST43, ST44, ST46, ST71] every way to read a file allows the same (seed ${SEED})`, async () => {
  for (const bucket of buckets) {
    for (const caller of callers) {
      const files = bucket.files.filter(({ key }) => key.endsWith(".gif"));
      for (const file of files) {
        const isAllowed = may(bucket, caller, "read", file);
        const about = { caller: caller.name, read: bucket.rules.read.source, file };
        const wanted = READS.map(({ name, isOpen }) => {
          if (isNobody(caller)) return [name, isOpen && isAllowed ? 200 : 401];
          return [name, isAllowed ? 200 : 403];
        });
        const got = await Promise.all(
          READS.map(async ({ name, run }) => [name, await run(caller.client, bucket.name, file.key)]),
        );
        expect({ ...about, got }).toEqual({ ...about, got: wanted as [string, number][] });
      }
      for (const folder of [null, "", "a/", "z/nobody/"]) await expectListed(bucket, caller, folder);
    }
  }
});

interface Listed {
  objects?: { key: string }[];
  folders?: string[];
  cursor: string | null;
}

/** The files and folders in a folder, of these keys. */
function namesIn(folder: string, keys: readonly string[]): string[] {
  const names = keys.filter((key) => key.startsWith(folder)).map((key) => key.slice(folder.length));
  return [...new Set(names.map((name) => folder + name.replace(/\/.*$/s, "/")))];
}

/** `folder` null: all files. */
async function expectListed(bucket: Bucket, caller: Caller, folder: string | null): Promise<void> {
  const readable = bucket.files.filter((file) => may(bucket, caller, "read", file)).map(({ key }) => key);
  const visible = folder === null ? readable : namesIn(folder, readable);
  const listed: string[] = [];
  let status = 200;
  for (let cursor: string | null = ""; cursor !== null && status === 200; ) {
    const query: Record<string, string | number> = {
      limit: 7,
      ...(cursor === "" ? {} : { cursor }),
      ...(folder === null ? {} : { delimiter: "/", prefix: folder }),
    };
    const answer: Answer<Listed> = await caller.client.get<Listed>(`/api/storage/${bucket.name}`, { query });
    status = answer.status;
    const { objects = [], folders = [] } = answer.body;
    listed.push(...[...objects.map(({ key }) => key), ...folders].sort());
    cursor = answer.body.cursor;
    const told = Buffer.from(cursor ?? "", "base64url").toString("latin1");
    expect(bucket.files.filter(({ key }) => told.includes(key))).toEqual([]);
  }
  const isDecided = caller.scopes !== null || !bucket.rules.read.looksAtFile;
  const isDenied = isNobody(caller) || (isDecided && readable.length === 0);
  const about = { caller: caller.name, read: bucket.rules.read.source };
  expect({ ...about, status, listed }).toEqual({
    ...about,
    ...(isDenied ? { status: isNobody(caller) ? 401 : 403, listed: [] } : { status: 200, listed: visible }),
  });
}

const bytes = { body: CHANGED, headers: { "content-type": "text/plain" } };

/** Each tries to change one file; whether it did is looked at afterwards. */
const CHANGES: readonly {
  name: string;
  action: "write" | "delete";
  run(client: HttpClient, bucket: string, key: string): Promise<unknown>;
}[] = [
  {
    name: "upload",
    action: "write",
    run: (client, bucket, key) => upload(client, bucket, key, CHANGED),
  },
  {
    name: "signed-upload-url",
    action: "write",
    run: async (client, bucket, key) => {
      const { status, body } = await post(client, `/api/storage/${bucket}/signed-upload-url`, { key });
      if (status === 200) await platform.fetch(relative(body["url"]), { method: "PUT", ...bytes });
    },
  },
  {
    name: "multipart",
    action: "write",
    run: async (client, bucket, key) => {
      const base = `/api/storage/${bucket}/multipart`;
      const { status, body } = await post(client, `${base}/create`, { key });
      if (status !== 200) return;
      const uploadId = String(body["uploadId"]);
      const query = new URLSearchParams({ uploadId, key, partNumber: "1" });
      const part = await client.fetch(`${base}/upload-part?${query}`, { method: "POST", ...bytes });
      const { etag } = (await part.json()) as { etag: string }; // as specified
      await post(client, `${base}/complete`, { uploadId, key, parts: [{ partNumber: 1, etag }] });
    },
  },
  {
    name: "PATCH metadata",
    action: "write",
    run: (client, bucket, key) => client.patch(`${path(bucket, key)}/metadata`, { changed: "yes" }),
  },
  { name: "DELETE", action: "delete", run: (client, bucket, key) => client.delete(path(bucket, key)) },
  {
    name: "delete-batch",
    action: "delete",
    run: (client, bucket, key) => post(client, `/api/storage/${bucket}/delete-batch`, { keys: [key] }),
  },
];

test(`[ST41, ST42, ST44, ST52] every way to change a file allows the same (seed ${SEED})`, async () => {
  for (const bucket of buckets) {
    for (const caller of callers) {
      await Promise.all(
        CHANGES.map(async (change) => {
          const key = keyFor(caller, change);
          const file = bucket.files.find((one) => one.key === key);
          if (file === undefined) throw new Error(`no file ${key}`);
          await change.run(caller.client, bucket.name, key);
          const left = await platform.service.fetch(path(bucket.name, key));
          const { customMetadata } = (
            await platform.service.get<{ customMetadata?: JsonObject }>(`${path(bucket.name, key)}/metadata`)
          ).body;
          const text = await left.text();
          const isChanged = left.status === 404 || text === CHANGED || customMetadata?.["changed"] === "yes";
          const isAllowed = !isNobody(caller) && may(bucket, caller, change.action, file);
          const about = { caller: caller.name, change: change.name, rule: bucket.rules[change.action].source, file };
          expect({ ...about, isChanged }).toEqual({ ...about, isChanged: isAllowed });
        }),
      );
    }
  }
});
