import { expect, test } from "bun:test";
import { allowedRedirect } from "./redirect.ts";

const ALLOWED = [
  "https://app.example.com/done",
  "https://app.example.com/in/*",
  "https://bare.example.com*",
  "myapp://callback/*",
];

test.each([
  ["https://app.example.com/done", true],
  ["https://app.example.com/done?x=1", false],
  ["https://app.example.com/in/any?x=1#y", true],
  ["https://app.example.com/in/../out", false],
  ["https://app.example.com/in/%2e%2e/out", false],
  ["https://bare.example.com/any", true],
  ["https://bare.example.com.evil.example/any", false],
  ["https://bare.example.com@evil.example/", false],
  ["https://bare.example.com:444/", false],
  ["HTTPS://APP.example.com/done", true],
  ["myapp://callback/token", true],
  ["myapp://other/token", false],
  ["https://app.example.com\t.evil.example/in/", false],
  ["javascript:alert(1)", false],
  ["", false],
])("[AU22] %p is allowed: %p", (text, isAllowed) => {
  expect(allowedRedirect(text, ALLOWED) !== null).toBe(isAllowed);
});
