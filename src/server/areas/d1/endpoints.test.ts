import { expect, test } from "bun:test";
import { systemClock } from "../../../kernel/clock.ts";
import { SERVER } from "../../access/principal.ts";
import { createAnswerRoom } from "../../db/processes/answer-room.ts";
import { sqlEndpoints } from "./endpoints.ts";
import type { SqlService } from "./service.ts";

test("[DQ103] a large answer of a write whose entry for the audit log cannot be written gives its room back", async () => {
  const room = createAnswerRoom();
  const sizeBytes = 60 * 1024 * 1024;
  const service: Pick<SqlService, "query"> = {
    async query(_, { callerName }) {
      const { ready, release } = room.reserve(callerName, sizeBytes);
      await ready;
      return { parts: [], sizeBytes, note: null, release, isWrite: true };
    },
  };
  const [query] = sqlEndpoints(new Map([["main", service as SqlService]]), {
    clock: systemClock,
    audit: () => Promise.reject(new Error("no space left")),
  });
  const context = {
    params: { database: "main" },
    principal: SERVER,
    callerName: "root",
    largeBody: async () => null,
    body: async () => ({ query: "UPDATE t SET a = 1 RETURNING b" }),
  };
  for (let turn = 0; turn < 2; turn++) await expect(query?.handle(context as never)).rejects.toThrow("no space left");
  expect(await Promise.race([room.reserve("other", sizeBytes).ready, Bun.sleep(0).then(() => "full")])).toBeUndefined();
});
