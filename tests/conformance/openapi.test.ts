import { expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { testPlatform } from "../support/index.ts";

interface Operation {
  operationId: string;
  parameters: { name: string }[];
  responses: Record<string, { content?: Record<string, { schema: JsonObject }> }>;
}

/** Every object in a value. */
function* objectsIn(value: JsonValue): Generator<JsonObject> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value;
  for (const member of Object.values(value)) yield* objectsIn(member);
}

test("[CN39] the document has names, enums, maps and one error", async () => {
  const platform = await testPlatform({ config: "{}" });
  const { body } = await platform.get<{ paths: Record<string, Record<string, Operation>>; components: JsonObject }>(
    "/swagger/json",
  );
  await platform.stop();
  const operations = Object.values(body.paths).flatMap((methods) => Object.values(methods));
  const ids = operations.map(({ operationId }) => operationId);
  expect(ids.length).toBeGreaterThan(100);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-zA-Z]\w*$/.test(id))).toEqual([]);

  // Generators make names of variables of these; one without a letter ends the one for Go.
  const names = new Set(operations.flatMap(({ parameters }) => parameters.map(({ name }) => name)));
  expect([...names].filter((name) => !/^[a-zA-Z][\w-]*$/.test(name))).toEqual([]);

  // The document is JSON.
  const objects = [...objectsIn(body as unknown as JsonObject)];
  expect(objects.filter((one) => "patternProperties" in one && !("properties" in one))).toEqual([]);
  const isConstant = (one: JsonValue) => typeof one === "object" && one !== null && "const" in one;
  const ofConstants = objects.filter(
    ({ anyOf }) => Array.isArray(anyOf) && anyOf.length > 1 && anyOf.every(isConstant),
  );
  expect(ofConstants).toEqual([]);
  expect(JSON.stringify(body)).toContain('"enum":["public","private"]');

  const errors = operations.flatMap(({ operationId, responses }) =>
    Object.entries(responses)
      .filter(([status, { content }]) => Number(status) >= 400 && content !== undefined)
      .map(([status, { content }]) => [operationId, status, content?.["application/json"]?.schema["$ref"]]),
  );
  const others = errors.filter(([, , reference]) => reference !== "#/components/schemas/Error");
  // The health of a server that does not serve says which check fails.
  expect(others.map(([id, status]) => `${id} ${status}`)).toEqual(["getApiHealth 503"]);
});
