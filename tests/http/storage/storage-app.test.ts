import { afterAll, beforeAll, expect, test } from "bun:test";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, testPlatform } from "../../support/index.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { upload } from "./storage-support.ts";

// `app.storage(bucket)`, called by a hook with what is inserted: the outcome comes back in the record.

let s3: S3Server;
let platform: TestPlatform;
beforeAll(async () => {
  s3 = startS3Server("attic");
  platform = await testPlatform({
    config: `{
      storage: { buckets: {
        files: {},
        remote: { backend: { s3: { endpoint: "${s3.endpoint}", bucket: "attic", accessKeyId: "id", secretAccessKey: "s" } } },
      } },
      databases: { shared: { tables: { calls: {
        schema: { bucket: { type: "string" }, method: { type: "string" }, argument: { type: "json" }, outcome: { type: "json" } },
        hooks: { beforeInsert: async (auth, call, app) => {
          try {
            const outcome = await app.storage(call.bucket)[call.method](call.argument);
            return { ...call, outcome: { value: outcome instanceof Blob ? await outcome.text() : outcome } };
          } catch (cause) {
            return { ...call, outcome: { status: cause.status, message: cause.message } };
          }
        } },
      } } } },
    }`,
  });
  for (const key of ["a", "b", "c"]) await upload(platform.service, "files", key, key);
  await upload(platform.service, "remote", "a", "far away");
});
afterAll(async () => {
  await platform.stop();
  await s3.stop();
});

interface Outcome {
  value?: {
    items: { key: string }[];
    hasMore: boolean;
    objects: { key: string }[];
    truncated: boolean;
    cursor: string | null;
  };
  status?: number;
  message?: string;
}
async function call(bucket: string, method: string, argument: JsonValue): Promise<Outcome> {
  const answer = await platform.service.post<{ outcome: Outcome }>("/api/db/shared/tables/calls", {
    ...{ bucket, method, argument },
  });
  expect(answer.status).toBe(201);
  return answer.body.outcome;
}

test("[ST81] app.storage lists within the limits of the endpoint", async () => {
  for (const limit of [0, -1, 1.5, "2", {}]) {
    const outcome = await call("files", "list", { limit });
    expect([limit, outcome]).toMatchObject([limit, { status: 400, message: expect.stringContaining("limit must be") }]);
  }
  for (const options of [{ prefix: 1 }, { cursor: 1 }, { cursor: "made up" }]) {
    expect(await call("files", "list", options)).toMatchObject({ status: 400 });
  }
  const first = (await call("files", "list", { limit: 2 })).value;
  expect([first?.objects.map(({ key }) => key), first?.truncated]).toEqual([["a", "b"], true]);
  expect([first?.items, first?.hasMore]).toEqual([first?.objects ?? [], true]);
  const second = (await call("files", "list", { limit: 5000, cursor: first?.cursor ?? "" })).value;
  expect([second?.objects.map(({ key }) => key), second?.truncated]).toEqual([["c"], false]);
  expect((await call("files", "list", { prefix: null, limit: null, cursor: null })).value?.objects.length).toBe(3);
});

test("[ST83] app.storage is 503 for a file that its store does not have whole", async () => {
  expect(await call("remote", "get", "a")).toEqual({ value: "far away" } as never);
  s3.halving = true;
  expect(await call("remote", "get", "a")).toMatchObject({ status: 503 });
  s3.halving = false;
  s3.failing = true;
  expect(await call("remote", "get", "a")).toMatchObject({ status: 503 });
  s3.failing = false;
});
