import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { inEveryView, openDashboard, overflowOf, violationsOf } from "../support/dashboard.ts";
import { type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const SECRET = `whsec_${Buffer.from("the secret of a webhook has 32 b").toString("base64")}`;

const browser = testBrowser();
const { browserTest } = browser;
let isWell = false;
let receiver: Bun.Server<undefined>;
let platform: TestPlatform;
beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    fetch: () =>
      isWell ? Response.json({ taken: true }) : Response.json({ reason: "no such customer" }, { status: 422 }),
  });
  // One of its own, so that a page finds the server again after a restart.
  const probe = Bun.serve({ port: 0, fetch: () => new Response() });
  const args = ["--port", String(probe.port)];
  await probe.stop(true);
  platform = await testPlatform({
    args,
    config: `{
      databases: { shared: { tables: { orders: { schema: { total: { type: "integer" } } } } } },
      jobs: { charge: {
        data: { type: "object", required: ["amount"], properties: { amount: { type: "integer", minimum: 1 } } },
        retries: 0, run: ({ data }) => { if (data.amount > 10) throw new Error("too much"); },
      } },
      routes: (api) => api.post("/charge", ({ app, body }) => app.jobs.enqueue("charge", body)),
      cron: { nightly: { schedule: "30 3 * * *", timezone: "Europe/Berlin", run() {} } },
      webhooks: { crm: { url: "http://127.0.0.1:${receiver.port}/of-the-crm", secret: "${SECRET}", on: { table: "shared.orders", events: ["insert"] } } },
      auth: { mail: { templates: { invite: {
        subject: "Come in", text: "Open {{link}}",
        html: '<h1>Welcome to the club</h1><a href="{{link}}">{{link}}</a><img src="https://example.com/p.png"><script>document.body.dataset.ran = "yes"</script>',
      } } } },
      serviceKeys: { reader: { key: "${READER}", scopes: ["jobs:*:*:read"] } },
    }`,
  });
  await platform.service.post("/api/db/shared/tables/orders", { id: "o1", total: 42 });
  await platform.service.post("/api/auth/admin/users/invite", { email: "ann@example.com" });
});
afterAll(async () => {
  await receiver.stop(true);
  await platform.stop();
});

const open = (path: string, options: Parameters<typeof openDashboard>[3] = {}) =>
  openDashboard(browser, platform, path, options);

browserTest("[AD71] schedules are shown with their next runs", async () => {
  const { page, problems } = await open("/admin/jobs");
  await page.getByRole("tab", { name: "Schedules" }).click();
  const row = page.getByRole("row").filter({ hasText: "cron:nightly" });
  await row.getByText("Europe/Berlin").waitFor();
  expect(await row.getByRole("listitem").count()).toBe(5);
  expect(problems).toEqual([]);
});

browserTest("[AD163] a job of the config is run again with edited data", async () => {
  expect((await platform.service.post("/api/functions/charge", { amount: 50 })).status).toBe(200);
  const { page, problems } = await open("/admin/jobs?state=failed");
  await page.getByRole("button", { name: "charge", exact: true }).click();
  await page.getByText("too much").waitFor();
  await page.getByRole("button", { name: "Run again with other data" }).click();
  const dialog = page.getByRole("dialog", { name: "Run charge again" });
  await dialog.getByRole("textbox", { name: "Data" }).fill('{ "amount": 0 }');
  await dialog.getByRole("button", { name: "Run" }).click();
  await dialog
    .getByText(/amount/)
    .first()
    .waitFor();
  await dialog.getByText(/at least 1/).waitFor();
  await dialog.getByRole("textbox", { name: "Data" }).fill('{ "amount": 5 }');
  await dialog.getByRole("button", { name: "Run" }).click();
  await dialog.waitFor({ state: "detached" });
  await until("the new job is done", async () => {
    type Jobs = { jobs: { data: { amount: number } }[] };
    const { body } = await platform.service.get<Jobs>("/api/admin/jobs?name=charge&state=done");
    return body.jobs.some(({ data }) => data.amount === 5);
  });
  // The refused data is 400 in the console of the browser.
  expect(problems.filter((problem) => !problem.includes("400"))).toEqual([]);
  const { page: reading } = await open("/admin/jobs?state=failed", { key: READER });
  await reading.getByRole("button", { name: "charge", exact: true }).click();
  await reading.getByText("too much").waitFor();
  expect(await reading.getByRole("button", { name: "Run again with other data" }).count()).toBe(0);
});

browserTest("[AD71] a delivery shows its request and what the receiver said, and is retried", async () => {
  const { page } = await open("/admin/jobs?view=webhooks&webhook=crm");
  await page.getByRole("button", { name: "webhook:crm" }).click();
  await page.getByText('"total": 42').waitFor();
  await page.getByText(/The receiver answered 422/).waitFor();
  await page.getByText("422, application/json").waitFor();
  await page.getByRole("region", { name: "Body of the answer" }).getByText("no such customer").waitFor();
  expect(await page.content()).not.toContain("of-the-crm");
  isWell = true;
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("The receiver has taken it.").waitFor();
  await page.getByRole("region", { name: "Body of the answer" }).getByText('{"taken":true}').waitFor();
});

browserTest(
  "[AD71] a mail of the outbox is seen as text and as HTML, without its link and without scripts",
  async () => {
    const { page } = await open("/admin/jobs?view=mail");
    await page.getByRole("button", { name: "Come in" }).click();
    const frame = page.frameLocator("iframe[title='The mail as HTML']");
    await frame.getByRole("heading", { name: "Welcome to the club" }).waitFor();
    expect(await frame.locator("body").textContent()).toContain("[hidden]");
    expect(await frame.locator("body").getAttribute("data-ran")).toBeNull();
    await page.getByRole("tab", { name: "Text" }).click();
    await page.getByText("Open [hidden]").waitFor();
    // The address leads to the mail.
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByRole("dialog").getByText("ann@example.com").waitFor();
  },
);

browserTest("[AD71] a key that may only read jobs sees neither mails nor buttons", async () => {
  const { page, problems } = await open("/admin/jobs", { key: READER });
  await page.getByRole("button", { name: "webhook:crm" }).waitFor();
  expect(await page.getByRole("tab").allTextContents()).toEqual(["Queue", "Schedules", "Webhooks"]);
  for (const name of ["Run", "Retry", "Cancel"]) {
    expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
  }
  expect(problems).toEqual([]);
});

browserTest("[AD30] the parts of the page of jobs are accessible and fit", async () => {
  await inEveryView(async (options) => {
    const { page, context } = await open("/admin/jobs", options);
    for (const view of ["jobs", "schedules", "webhooks", "mail"]) {
      await page.goto(`${platform.url}/admin/jobs?view=${view}`);
      await page.getByRole("table").first().waitFor();
      expect({ view, violations: await violationsOf(page) }).toEqual({ view, violations: [] });
      expect({ view, overflow: await overflowOf(page) }).toEqual({ view, overflow: 0 });
    }
    await context.close();
  });
});

browserTest(
  "[AD75] a page says that the server does not answer, and goes on when it is back",
  async () => {
    const { page } = await open("/admin/users");
    await page.getByRole("link", { name: "ann@example.com" }).waitFor();
    await platform.kill();
    const note = page.getByText("The server does not answer");
    await note.waitFor({ timeout: 60_000 });
    // What could not be loaded says why.
    await page.getByRole("link", { name: "Audit", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: "This did not work" }).waitFor({ timeout: 60_000 });
    await platform.restart();
    await note.waitFor({ state: "detached", timeout: 60_000 });
    await page.getByRole("button", { name: "user.create" }).first().waitFor();
    await until("it has loaded again", async () => (await page.getByText("This did not work").count()) === 0);
  },
  180_000,
);

browserTest("[AU364] the texts of mails are seen with sample data, and one is sent as a test", async () => {
  const { page } = await open("/admin/jobs?view=templates");
  await page.getByText("Confirm your email address").waitFor();
  await page.frameLocator("iframe").getByRole("link", { name: "Confirm this address" }).waitFor();
  await page.getByLabel("Mail", { exact: true }).first().click();
  await page.getByRole("option", { name: "Invitation" }).click();
  await page.getByText("Come in").waitFor();
  await page.getByText("Text", { exact: true }).click();
  await page.getByText(/Open http/).waitFor();
  await page.getByLabel("Send it to").fill("bob@example.com");
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("The mail was sent.").waitFor();
  await page.getByLabel("Send it to").fill("nobody@nowhere");
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("to must be an email address").waitFor();
});
