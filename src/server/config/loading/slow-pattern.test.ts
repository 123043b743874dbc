import { expect, test } from "bun:test";
import { slowTextOf } from "./slow-pattern.ts";

test("[TB149] patterns that are slow for a short text are found", () => {
  for (const source of [
    "^(a+)+$",
    "^(\\w+\\s?)*$",
    "^([a-z0-9]+)*@x$",
    "^(a|a)*$",
    "(.*a){10}$",
    "^([^@]+)+@",
    "^(\\d+,?)+$",
  ]) {
    expect([source, slowTextOf(new RegExp(source, "u")) !== null]).toEqual([source, true]);
  }
});

test("[TB149] ordinary patterns are not found", () => {
  for (const source of [
    ...[
      "^[a-z-]+$",
      "^\\S+@\\S+\\.\\S+$",
      "^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$",
      "^([a-z]+-)*[a-z]+$",
      "^\\+?[0-9 ()-]{6,20}$",
    ],
    ...[
      "^#[0-9a-f]{6}$",
      "^(?:\\d{1,3}\\.){3}\\d{1,3}$",
      "\\s+$",
      "^\\d{4}-\\d{2}-\\d{2}$",
      "^https?://[^\\s/]+(/[^\\s]*)?$",
      "\\p{L}*",
    ],
  ]) {
    expect([source, slowTextOf(new RegExp(source, "u"))]).toEqual([source, null]);
  }
  expect(slowTextOf(/^a+$/g)).toBeNull();
});
