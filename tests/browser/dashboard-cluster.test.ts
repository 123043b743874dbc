/** Tests of what the overview shows of a cluster and of processes. */
import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { type TestCluster, testCluster } from "../support/cluster/cluster.ts";
import { expectAccessible, inEveryView, openDashboard } from "../support/dashboard.ts";
import { until } from "../support/index.ts";

const browser = testBrowser();
const { browserTest } = browser;
const START_TIMEOUT_MS = 120_000;
let cluster: TestCluster;
beforeAll(async () => {
  cluster = await testCluster({ config: "databases: { main: { tables: { notes: {} } } }", nodes: 2 });
}, START_TIMEOUT_MS);
afterAll(() => cluster.stop(), START_TIMEOUT_MS);

browserTest("[AD173] the overview has the nodes of a cluster, with role and lag, and says which are gone", async () => {
  const owner = await cluster.owner();
  const follower = cluster.nodes.find((node) => node !== owner);
  if (follower === undefined) throw new Error("there is no follower");
  const { page, problems } = await openDashboard(browser, owner, "/admin");
  const section = page.getByRole("region", { name: "Cluster" });
  await section.getByText("works", { exact: true }).waitFor();
  const rows = section.getByRole("table", { name: "Nodes" }).getByRole("row");
  await until("both nodes are shown", async () => (await rows.count()) === 3);
  expect(await rows.filter({ hasText: "this one" }).textContent()).toContain("owner");
  expect(await rows.filter({ hasText: "follower" }).count()).toBe(1);
  await section.getByText(/Log of commits: takes writes/).waitFor();
  expect(problems).toEqual([]);
  await inEveryView(async (options) => {
    const { page: view } = await openDashboard(browser, owner, "/admin", options);
    await view.getByRole("region", { name: "Cluster" }).waitFor();
    await expectAccessible(view);
  });
  await follower.kill("SIGKILL");
  await section.getByText("gone").waitFor({ timeout: 60_000 });
});
