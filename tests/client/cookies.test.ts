import { afterAll, beforeAll, expect, test } from "bun:test";
import { type CookieStore, cookieStore } from "../../src/client/index.ts";
import type { TestPlatform } from "../support/platform.ts";
import { clubClient, clubPlatform, visitor } from "./support.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await clubPlatform();
});
afterAll(() => platform.stop());

/** Returns the cookies that a browser sends after it has taken these `Set-Cookie` values. */
function cookieHeader(store: CookieStore, before = ""): string {
  const jar = new Map(before.split("; ").flatMap((pair) => (pair === "" ? [] : [pair.split("=") as [string, string]])));
  for (const cookie of store.setCookies()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*);/.exec(cookie) ?? [];
    if (cookie.includes("Max-Age=0")) jar.delete(name);
    else jar.set(name, value);
  }
  return [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
}

test("[TC26] a server has the session from the Cookie header, and answers with what has changed", async () => {
  const signIn = cookieStore(null);
  const visit = await visitor(platform.url, { store: signIn });
  const [cookie = "", ...others] = signIn.setCookies();
  expect(others).toEqual([]);
  expect(cookie).toMatch(/^platform\.session=[\w-]+; Path=\/; SameSite=Lax; Secure; Max-Age=2419200$/);

  const header = `theme=dark; ${cookieHeader(signIn)}; other=1`;
  const render = cookieStore(header);
  const client = clubClient(platform.url, { store: render });
  expect(client.auth.user).toEqual(visit.auth.user);
  expect(await client.auth.reload()).toEqual(visit.auth.user);
  expect(render.setCookies()).toEqual([]);

  const leave = cookieStore(header);
  await clubClient(platform.url, { store: leave }).auth.signOut();
  expect(leave.setCookies()).toHaveLength(1);
  expect(cookieHeader(leave, header)).toBe("theme=dark; other=1");
  expect(clubClient(platform.url, { store: cookieStore(cookieHeader(leave, header)) }).auth.user).toBeNull();
});

test("[TC26] a long session takes several cookies, and leaves none behind when it is shorter", async () => {
  const first = cookieStore("");
  const client = await visitor(platform.url, { store: first });
  await client.auth.updateMe({ metadata: { text: "é".repeat(4000) } });
  expect(first.setCookies().length).toBeGreaterThan(1);
  for (const cookie of first.setCookies()) expect(cookie.length).toBeLessThan(4096);
  const header = cookieHeader(first);
  const second = cookieStore(header);
  const same = clubClient(platform.url, { store: second });
  expect(same.auth.user).toEqual(client.auth.user);
  await same.auth.updateMe({ metadata: {} });
  expect(cookieHeader(second, header).split("; ")).toHaveLength(1);
});

test("[TC26] attributes are the caller's; cookies of others and broken ones are none", () => {
  const store = cookieStore("", { secure: false, path: "/app", maxAge: 60, domain: "example.com" });
  void store.set("platform.session@a", "x");
  expect(store.setCookies()).toEqual(["platform.session=eA; Path=/app; SameSite=Lax; Domain=example.com; Max-Age=60"]);
  expect(store.get("platform.session@b")).toBe("x");
  for (const header of ["platform.session=%%%", "platform.session=", "=", "platform.session", ";;;"]) {
    expect(cookieStore(header).get("platform.session@a")).toBeNull();
  }
});
