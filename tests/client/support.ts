import { type ClientOptions, createClient } from "../../src/client/index.ts";
import { type TestPlatform, type TestPlatformOptions, testPlatform } from "../support/platform.ts";
import type config from "./club-config.ts";

/** A platform with `club-config.ts`, or with another version of its text. */
export async function clubPlatform(
  change: (text: string) => string = (text) => text,
  options: Omit<TestPlatformOptions, "config"> = {},
): Promise<TestPlatform> {
  const text = await Bun.file(new URL("club-config.ts", import.meta.url)).text();
  return testPlatform({ ...options, config: change(text) });
}

export const clubClient = (url: string, options: Omit<ClientOptions, "url"> = {}) =>
  createClient<typeof config>({ ...options, url });

/** A client of a new anonymous user. */
export async function visitor(url: string, options: Omit<ClientOptions, "url"> = {}) {
  const client = clubClient(url, options);
  await client.auth.signInAnonymously();
  return client;
}

/** The error with which a promise rejects. */
export async function errorOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("It was expected to reject");
}
