import { afterAll, beforeAll, expect } from "bun:test";
import { type PushWorld, pushWorld, register, TITLED } from "../http/push/push-support.ts";
import { testBrowser } from "../support/browser.ts";
import { expectGoodPages, openDashboard } from "../support/dashboard.ts";
import { SERVICE_KEY, type SignedIn, signIn } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const SENDER = "sender-key-0123456789abcdefghijklmnopqrstuv";
/** Text of the greatest length that the server takes. */
const LONG = "a long name ".repeat(21).trim();
/** Timeout of tests that open many pages. */
const LONG_MS = 200_000;

let world: PushWorld;
let ann: SignedIn;
const browser = testBrowser();
const { browserTest } = browser;
const signedIn = (path: string, key = SERVICE_KEY) => openDashboard(browser, world.platform, path, { key });

beforeAll(async () => {
  world = await pushWorld({
    serviceKeys: {
      reader: { key: READER, scopes: ["push:*:*:read"] },
      sender: { key: SENDER, scopes: ["push:*:*:send"] },
    },
  });
  ann = await signIn(world.platform, { email: "ann@example.com" });
  await register(ann, "anns-phone");
  await register(ann, LONG, { platform: "ios", token: "<img src=x onerror=ran=1>" });
  await ann.post("/api/push/topic/subscribe", { topic: "news" });
  for (let n = 0; n < 60; n++) await register(await signIn(world.platform), `device-${n}`, { platform: "web" });
});
afterAll(() => world.stop());

browserTest("[AD40] devices are listed page by page, and narrowed by user, platform, topic and token", async () => {
  const { page, problems } = await signedIn("/admin/push");
  await page.getByRole("heading", { level: 1, name: "Push" }).waitFor();
  expect(await page.title()).toBe("Push");
  const rows = page.getByRole("table", { name: "Devices" }).getByRole("link");
  await page.getByRole("link", { name: "device-59" }).waitFor();
  expect(await rows.count()).toBe(50);
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("link", { name: "anns-phone" }).waitFor();
  expect(await rows.count()).toBe(62);
  await page.getByRole("combobox", { name: "Platform" }).click();
  await page.getByRole("option", { name: "android" }).click();
  await page.getByRole("link", { name: "device-59" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "anns-phone" }).waitFor();
  expect(await rows.allTextContents()).toEqual(["anns-phone"]);
  await page.goto(`${world.platform.url}/admin/push`);
  await page.getByRole("combobox", { name: "User" }).fill("ann@");
  await page.getByRole("option", { name: "ann@example.com" }).click();
  await page.getByRole("link", { name: "device-59" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "anns-phone" }).waitFor();
  expect(await rows.count()).toBe(2);
  expect(page.url()).toContain(ann.id);
  await page.getByRole("textbox", { name: "Token" }).fill("nothing");
  await page.getByText("No device is like this").waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD40] a device shows token, topics and metadata, which is edited", async () => {
  const { page } = await signedIn("/admin/push?topic=news");
  await page.getByRole("link", { name: LONG }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("<img src=x onerror=ran=1>").waitFor();
  expect(await page.evaluate("window.ran ?? null")).toBeNull();
  await dialog.getByLabel("Metadata").fill("{ app: 2 }");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("This is no JSON").waitFor();
  await dialog.getByLabel("Metadata").fill('{ "app": 2 }');
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByRole("button", { name: "Save" }).waitFor({ state: "detached" });
  const { body } = await world.platform.service.get<{ devices: { metadata: object }[] }>("/api/admin/push/devices", {
    query: { userId: ann.id, platform: "ios" },
  });
  expect(body.devices[0]?.metadata).toEqual({ app: 2 });
});

browserTest("[AD40] topics have counts, and lead to their devices", async () => {
  const { page } = await signedIn("/admin/push?view=topics");
  const topics = page.getByRole("table", { name: "Topics" });
  await topics.getByRole("row", { name: /^all 62/ }).waitFor();
  await page.getByRole("textbox", { name: "Search" }).fill("ne");
  await topics.getByRole("row", { name: /^all/ }).waitFor({ state: "detached" });
  await topics.getByRole("link", { name: "news" }).click();
  await page.getByRole("link", { name: "anns-phone" }).waitFor();
  await page.getByRole("link", { name: LONG }).waitFor();
  expect(await page.getByRole("table", { name: "Devices" }).getByRole("link").count()).toBe(2);
});

browserTest("[AD40] a test message goes to a user, a device and a topic, and the log has each", async () => {
  const { page } = await signedIn("/admin/push");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  const dialog = page.getByRole("dialog");
  const send = async (title: string) => {
    await dialog.getByLabel("Title").fill(title);
    await dialog.getByRole("button", { name: "Send", exact: true }).click();
  };
  await dialog.getByRole("combobox", { name: "User" }).fill("ann@");
  await page.getByRole("option", { name: "ann@example.com" }).click();
  await send("x".repeat(5000));
  await dialog.getByRole("alert").waitFor();
  await send("To a user");
  await dialog.getByText("Sent to 2 devices.").waitFor();
  await page.goto(`${world.platform.url}/admin/push?to=token%3Aandroid%3Aanns-phone`);
  await send("To a device");
  await dialog.getByText("Sent to one device.").waitFor();
  await page.goto(`${world.platform.url}/admin/push?view=topics`);
  await page.getByRole("row", { name: /^news/ }).getByRole("button", { name: "Send", exact: true }).click();
  await send("To a topic");
  await dialog.getByText("The message is queued").waitFor();
  await page.goto(`${world.platform.url}/admin/push?view=log`);
  const log = page.getByRole("table", { name: "Log" });
  await log.getByText("To a topic").first().waitFor();
  for (const title of ["To a user", "To a device"]) await log.getByText(title).first().waitFor();
  await page.getByRole("combobox", { name: "Status" }).click();
  await page.getByRole("option", { name: "failed" }).click();
  await page.getByText("No message is like this").waitFor();
});

browserTest(
  "[AD21] [AD40] a key that may read sends and edits nothing, and one that may send reads nothing",
  async () => {
    const reader = await signedIn("/admin/push?device=anns-phone&to=user%3Ax", READER);
    await reader.page.getByRole("dialog").getByText("First seen").waitFor();
    for (const name of ["Send", "Send to this device", "Save"]) {
      const count = await reader.page.getByRole("button", { name, exact: true, includeHidden: true }).count();
      expect({ name, count }).toEqual({ name, count: 0 });
    }
    const sender = await signedIn("/admin/push", SENDER);
    await sender.page.getByRole("button", { name: "Send", exact: true }).click();
    await sender.page.getByRole("dialog").getByRole("textbox", { name: "User" }).fill(ann.id);
    await sender.page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
    await sender.page.getByText("Sent to 2 devices.").waitFor();
    expect(await sender.page.getByRole("tab", { includeHidden: true }).count()).toBe(0);
  },
);

browserTest(
  "[AD30] the page Push is accessible and fits",
  async () => {
    await world.platform.service.post("/api/push/send", { userId: ann.id, ...TITLED });
    await expectGoodPages(browser, world.platform, [
      "/admin/push",
      "/admin/push?token=nothing",
      "/admin/push?device=anns-phone",
      "/admin/push?view=topics",
      "/admin/push?view=log",
      "/admin/push?to=",
    ]);
  },
  LONG_MS,
);
