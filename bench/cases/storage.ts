import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SERVICE_KEY, type TestPlatform, temporaryDirectory, testPlatform } from "../../tests/support/index.ts";
import { compareByTurns, WRK_RESULT } from "./wrk.ts";

const CONNECTIONS = 16;
const FILE_BYTES = 1024 * 1024;
/** Boundary in the form that browsers use. */
const BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW";
const LISTED_OBJECTS = 100_000;
const LIST_REQUESTS = 500;

export interface StorageFigures {
  downloadsPerSecond: number;
  downloadP99Ms: number;
  downloadFloorPerSecond: number;
  uploadsPerSecond: number;
  uploadP99Ms: number;
  uploadFloorPerSecond: number;
  /** Latency of listing 100 of 100,000 files, at random positions. */
  listP50Ms: number;
  listP99Ms: number;
}

/** Writes wrk's script for uploads: the same form to server and floor, with a key per connection. */
function uploadScript(directory: string): string {
  const path = join(directory, "upload.lua");
  writeFileSync(
    path,
    `local requests = {}
     local n = 0
     -- Written out beforehand: what the generator does meanwhile is taken from the server's machine.
     init = function()
       local file = string.rep("0123456789abcdef", ${FILE_BYTES / 16})
       local headers = { ["content-type"] = "multipart/form-data; boundary=${BOUNDARY}", ["x-platform-service-key"] = "${SERVICE_KEY}" }
       local head = '--${BOUNDARY}\\r\\nContent-Disposition: form-data; name="file"; filename="a"\\r\\n\\r\\n'
       for i = 0, ${CONNECTIONS - 1} do
         local key = '--${BOUNDARY}\\r\\nContent-Disposition: form-data; name="key"\\r\\n\\r\\nbench/' .. i .. '\\r\\n'
         requests[i] = wrk.format("POST", "/api/storage/files/upload", headers, key .. head .. file .. "\\r\\n--${BOUNDARY}--\\r\\n")
       end
     end
     request = function()
       n = n + 1
       return requests[n % ${CONNECTIONS}]
     end
     ${WRK_RESULT}`,
  );
  return path;
}

function downloadScript(directory: string): string {
  const path = join(directory, "download.lua");
  writeFileSync(path, WRK_RESULT);
  return path;
}

const at = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) * share)] ?? Number.NaN;

/** Inserts only records, as lists never read the bytes. Written while the server is down, because 100,000 uploads take long. */
async function fillBucket(platform: TestPlatform): Promise<void> {
  await platform.kill("SIGTERM");
  const database = new Database(join(platform.dataDirectory, "system.db"));
  const insert = database.query(
    "INSERT INTO storage_objects (bucket, key, fileId, size, contentType, uploaded) VALUES ('listed', ?, ?, 1, 'text/plain', 0)",
  );
  database.transaction(() => {
    for (let index = 0; index < LISTED_OBJECTS; index++) insert.run(keyAt(index), Bun.randomUUIDv7());
  })();
  database.close();
  await platform.restart();
}

const keyAt = (index: number): string => `photos/${String(index).padStart(6, "0")}.jpg`;

async function listLatencies(platform: TestPlatform): Promise<number[]> {
  const latencies: number[] = [];
  const list = async (query: { limit: number; cursor?: string }) => {
    const page = await platform.service.get<{ objects: unknown[]; cursor: string | null }>("/api/storage/listed", {
      query,
    });
    if (page.body.objects.length !== query.limit) throw new Error(`a page of ${page.body.objects.length} objects`);
    return page.body.cursor;
  };
  const cursors: string[] = [];
  for (let cursor = await list({ limit: 200 }); cursor !== null; cursor = await list({ limit: 200, cursor })) {
    cursors.push(cursor);
  }
  for (let index = 0; index < LIST_REQUESTS; index++) {
    const cursor = cursors[(index * 211) % cursors.length];
    if (cursor === undefined) throw new Error("the bucket has one page only");
    const begin = performance.now();
    await list({ limit: 100, cursor });
    latencies.push(performance.now() - begin);
  }
  return latencies;
}

/** Measures uploads and downloads of 1 MiB with 16 clients, and lists in a large bucket with one client. */
export async function measureStorage(): Promise<StorageFigures> {
  const directory = temporaryDirectory();
  const file = join(directory, "file.bin");
  writeFileSync(file, new Uint8Array(FILE_BYTES));
  const platform = await testPlatform({
    config: {
      storage: { buckets: { files: { access: { read: true } }, listed: {} } },
    },
  });
  const floor = Bun.spawn([process.execPath, join(import.meta.dir, "../storage-floor.ts"), directory, file], {
    ...{ stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  });
  try {
    const { value } = await floor.stdout.getReader().read();
    const floorUrl = new TextDecoder().decode(value).trim();
    const form = new FormData();
    form.append("key", "file");
    form.append("file", Bun.file(file));
    await platform.service.fetch("/api/storage/files/upload", { method: "POST", body: form });
    const down = await compareByTurns([`${platform.url}/api/storage/files/file`, floorUrl], {
      script: downloadScript(directory),
      connections: CONNECTIONS,
    });
    const up = await compareByTurns([platform.url, floorUrl], {
      script: uploadScript(directory),
      connections: CONNECTIONS,
    });
    await fillBucket(platform);
    const lists = await listLatencies(platform);
    return {
      ...{ downloadsPerSecond: down.perSecond, downloadP99Ms: down.p99Ms, downloadFloorPerSecond: down.floorPerSecond },
      ...{ uploadsPerSecond: up.perSecond, uploadP99Ms: up.p99Ms, uploadFloorPerSecond: up.floorPerSecond },
      ...{ listP50Ms: at(lists, 0.5), listP99Ms: at(lists, 0.99) },
    };
  } finally {
    floor.kill();
    await platform.stop();
  }
}
