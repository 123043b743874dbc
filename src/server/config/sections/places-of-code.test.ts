import { expect, test } from "bun:test";
import { PLACES_OF_CODE } from "../../../../tests/support/places-of-code.ts";
import { Platform } from "./platform.ts";

/** Returns the config paths that accept a function; `*`: a name that the config chooses. */
function placesOf(schema: unknown, path: readonly string[] = []): string[] {
  // A schema of `shape/schema.ts`.
  const shape = schema as {
    properties?: Record<string, unknown>;
    items?: unknown;
    "~entry"?: unknown;
    "~wanted"?: { is: (value: unknown) => boolean };
  };
  if (shape["~wanted"]?.is(() => true) === true) return [path.join(".")];
  const members = Object.entries(shape.properties ?? {}).flatMap(([name, one]) => placesOf(one, [...path, name]));
  const others = [shape["~entry"], shape.items].filter((one) => one !== undefined);
  return [...members, ...others.flatMap((one) => placesOf(one, [...path, "*"]))];
}

test("[CF205] the places of the config that take code are known, so that a test tries each", () => {
  expect(placesOf(Platform).sort()).toEqual([...PLACES_OF_CODE]);
});
