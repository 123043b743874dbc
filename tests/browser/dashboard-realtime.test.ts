import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { expectAccessible, LOOKS, openDashboard } from "../support/dashboard.ts";
import {
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
  until,
} from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const LONG = `broadcast:a-channel-with-${"an-absurdly-".repeat(20)}long-name`;
const CONFIG = `{
  databases: { shared: { tables: { notes: { schema: { text: { type: "string" } }, access: { read: true } } } } },
  routes: (api) => api.post("/fail", ({ app }) => { throw new TypeError("a mistake of the route"); }, { access: true }),
  serviceKeys: { reader: { key: "${READER}", scopes: ["realtime:*:*:read"] } },
}`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let ann: SignedIn;
let socket: TestSocket;
async function connect(): Promise<void> {
  socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: ann.token });
  await socket.nextOf("auth_success");
}
const open = (path: string, options?: Parameters<typeof openDashboard>[3]) =>
  openDashboard({ openProfile }, platform, path, options);
async function listen(channel: string): Promise<void> {
  socket.send({ type: "subscribe", channel });
  await socket.nextOf("subscribed");
}
const broadcast = (channel: string, text: string) =>
  platform.service.post("/api/realtime/broadcast", { channel, event: "said", payload: { text } });
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
  await connect();
});
afterAll(() => platform.stop());

browserTest("[AD46] connections and channels appear as they come, and are found by their beginning", async () => {
  const { page, problems } = await open("/admin/realtime");
  await page.getByRole("heading", { level: 1, name: "Realtime" }).waitFor();
  expect(await page.title()).toBe("Realtime");
  await page.getByText("Nobody listens").waitFor();
  await listen("broadcast:news");
  await listen("presence:lobby");
  await page.getByRole("row", { name: /broadcast:news broadcast 1/ }).waitFor();
  await page.getByRole("region", { name: "Connections" }).getByText("1", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Users" }).getByText("1", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Subscriptions" }).getByText("2", { exact: true }).waitFor();
  for (let n = 0; n < 3; n++) await broadcast("broadcast:news", "hi");
  await page.getByRole("row", { name: /broadcast:news broadcast 1 .* 3$/ }).waitFor();
  await page.getByRole("textbox", { name: "Search" }).fill("presence:");
  await page.getByRole("button", { name: "broadcast:news" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "presence:lobby" }).waitFor();
  await page.getByText("Most messages").click();
  await until("the state is in the address", () => new URL(page.url()).search === "?q=presence%3A&sort=rate");
  expect(problems).toEqual([]);
});

browserTest("[AD46] the messages of a channel are shown as they come, and a pause keeps what is shown", async () => {
  const { page } = await open("/admin/realtime?channel=broadcast%3Atail");
  await page.getByText("Nothing has been sent yet").waitFor();
  const messages = page.getByRole("list", { name: "Messages" }).getByRole("button");
  await broadcast("broadcast:tail", "the first one");
  await messages.filter({ hasText: "the first one" }).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await broadcast("broadcast:tail", "while it is paused");
  await broadcast("broadcast:other", "elsewhere");
  await messages.first().click();
  await page.getByRole("group", { name: "said" }).getByText("the first one").waitFor();
  expect(await messages.filter({ hasText: "paused" }).count()).toBe(0);
  await page.getByRole("button", { name: "Resume" }).click();
  await messages.filter({ hasText: "while it is paused" }).waitFor();
  expect(await page.getByText("elsewhere").count()).toBe(0);
  await page.getByRole("button", { name: "Clear" }).click();
  await messages.first().waitFor({ state: "detached" });
  for (let n = 0; n < 250; n++) await broadcast("broadcast:tail", `number ${n}`);
  await messages.filter({ hasText: "number 249" }).waitFor();
  expect(await messages.count()).toBe(200);
});

browserTest("[AD46] changes of a table are shown with the key's own rights, and refused without them", async () => {
  const { page } = await open("/admin/realtime?channel=realtime%3Ashared%3Anotes");
  await page.getByText("Nothing has been sent yet").waitFor();
  await platform.service.post("/api/db/shared/tables/notes", { text: "just written" });
  await page.getByRole("list", { name: "Messages" }).getByText("just written").waitFor();
  const other = await open("/admin/realtime?channel=realtime%3Ashared%3Anotes", { key: READER });
  await other.page.getByRole("alert").waitFor();
  expect(await other.page.getByRole("button", { name: "Broadcast", exact: true }).count()).toBe(0);
});

browserTest("[AD46] a message is broadcast, and what the server refuses is said", async () => {
  await listen("broadcast:form");
  const { page } = await open("/admin/realtime");
  await page.getByRole("button", { name: "Broadcast", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Broadcast" });
  await dialog.getByRole("textbox", { name: "Channel" }).fill("form");
  await dialog.getByRole("textbox", { name: "Event" }).fill("x".repeat(257));
  await dialog.getByRole("button", { name: "Send" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/1 to 256 characters/)
    .waitFor();
  await dialog.getByRole("textbox", { name: "Event" }).fill("hello");
  await dialog.getByRole("textbox", { name: "Payload" }).click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText("{ nothing");
  await page.keyboard.press("Control+Enter");
  await dialog.getByRole("alert").getByText("The payload is no JSON").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText('{"from":"the dashboard"}');
  await page.keyboard.press("Control+Enter");
  expect(await socket.nextOf("broadcast_event")).toMatchObject({ event: "hello", data: { from: "the dashboard" } });
  await dialog.waitFor({ state: "detached" });
});

browserTest("[AD47] the log is shown as it is written, and a pause keeps what is shown", async () => {
  const { page } = await open("/admin/logs?level=error");
  await page.getByText("live", { exact: true }).waitFor();
  const fail = async () => expect((await platform.post("/api/functions/fail")).status).toBe(500);
  await fail();
  const lines = page.getByRole("table", { name: "Log" }).getByRole("row").filter({ hasText: "a mistake of the route" });
  await lines.first().waitFor();
  expect(await lines.count()).toBe(1);
  await page.getByRole("button", { name: "Pause" }).click();
  await fail();
  await page.getByText("One new line").waitFor();
  expect(await lines.count()).toBe(1);
  await page.getByRole("button", { name: "Resume" }).click();
  await until("the other line is there", async () => (await lines.count()) === 2);
  await page.getByRole("textbox", { name: "Search" }).fill("nothing has these words");
  await page.getByText("No lines").waitFor();
  await page.getByRole("textbox", { name: "Search" }).fill("mistake");
  await until("both are found", async () => (await lines.count()) === 2);
});

browserTest("[AD47] after a lost connection the log comes back, with the lines of the time between", async () => {
  const proxy = await cuttingProxy(() => platform.url);
  try {
    const { page } = await openDashboard({ openProfile }, proxy, "/admin/logs?level=error&q=mistake");
    const lines = page
      .getByRole("table", { name: "Log" })
      .getByRole("row")
      .filter({ hasText: "a mistake of the route" });
    await page.getByText("live", { exact: true }).waitFor();
    const before = await lines.count();
    proxy.refuse(true);
    proxy.cut();
    await page.getByText("reconnecting").waitFor();
    expect((await platform.post("/api/functions/fail")).status).toBe(500);
    proxy.refuse(false);
    await page.getByText("live", { exact: true }).waitFor();
    await until("the line is there", async () => (await lines.count()) === before + 1);
    await platform.restart();
    await page.getByText("live", { exact: true }).waitFor();
    expect((await platform.post("/api/functions/fail")).status).toBe(500);
    await lines.first().waitFor();
  } finally {
    await proxy.stop();
  }
});

for (const { name, options } of LOOKS) {
  browserTest(`[AD30] the pages of realtime and logs are accessible and fit: ${name}`, async () => {
    await connect();
    await listen(LONG);
    await listen("presence:lobby");
    const { page } = await open("/admin/realtime", options);
    await page.getByRole("button", { name: LONG }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: LONG }).click();
    await page.getByText("Nothing has been sent yet").waitFor();
    await broadcast(LONG, "a long text ".repeat(50));
    await page.getByRole("list", { name: "Messages" }).getByRole("button").first().click();
    await expectAccessible(page);
    await page.getByRole("dialog").getByRole("button", { name: "Broadcast" }).click();
    await page.getByRole("textbox", { name: "Payload" }).waitFor();
    await expectAccessible(page);
    await page.goto(`${platform.url}/admin/logs`);
    await page.getByText("live", { exact: true }).waitFor();
    await expectAccessible(page);
  });
}
