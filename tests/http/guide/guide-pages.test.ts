import { afterAll, beforeAll, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { Glob } from "bun";
import { platformCommand, type TestPlatform, testEnvironment, testPlatform } from "../../support/index.ts";

const DOCS = resolve(import.meta.dir, "../../../docs");
const NAMES = [...new Glob("**/*.md").scanSync({ cwd: DOCS })].sort();

let developed: TestPlatform;
let served: TestPlatform;
beforeAll(async () => {
  [developed, served] = await Promise.all([
    testPlatform({ config: "{}", command: "dev" }),
    testPlatform({ config: "{}" }),
  ]);
});
afterAll(() => Promise.all([developed.stop(), served.stop()]));

interface Page {
  status: number;
  text: string;
  links: string[];
}

/** A page as a browser gets it. */
async function pageAt(url: string): Promise<Page> {
  const answer = await fetch(url, { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } });
  const text = await answer.text();
  const links = [...text.matchAll(/<(?:a|link|img|script) [^>]*?(?:href|src)="([^"]*)"/g)].map(([, link = ""]) => link);
  return { status: answer.status, text, links };
}

test("[CL440] what the first page links to is there, in development and not", async () => {
  for (const { url } of [developed, served]) {
    const { links } = await pageAt(url);
    expect(links.length).toBeGreaterThan(3);
    // From the sources the dashboard and the client are built when they are asked for, which their own tests do.
    for (const link of links.filter((each) => !/^(?:data:|\/admin|\/client)/.test(each))) {
      expect([link, (await fetch(new URL(link, url))).status]).toEqual([link, 200]);
    }
  }
  expect((await pageAt(developed.url)).links).toContain("/docs");
});

test("[CL440] dev serves every page of the guide, and their links and anchors lead to something", async () => {
  const pages = new Map<string, Page>();
  for (const name of NAMES) pages.set(`/docs/${name}`, await pageAt(`${developed.url}/docs/${name}`));
  expect((await fetch(`${developed.url}/docs`)).url).toBe(`${developed.url}/docs/README.md`);
  expect(pages.get("/docs/tutorial.md")?.text).toContain("<h1");
  for (const [path, { status, links }] of pages) {
    expect([path, status]).toEqual([path, 200]);
    for (const link of links) {
      const target = new URL(link, `${developed.url}${path}`);
      if (target.origin !== developed.url || !target.pathname.startsWith("/docs/")) continue;
      const found = pages.get(target.pathname);
      expect([path, link, found?.status]).toEqual([path, link, 200]);
      const id = decodeURIComponent(target.hash.slice(1));
      if (id !== "") expect([path, link, found?.text.includes(`id="${id}"`)]).toEqual([path, link, true]);
    }
  }
  expect((await fetch(`${developed.url}/docs/missing.md`)).status).toBe(404);
});

test("[CL440] a server that dev has not started has no guide, and the site comes first", async () => {
  expect((await fetch(`${served.url}/docs`)).status).toBe(404);
  expect((await fetch(`${served.url}/docs/README.md`)).status).toBe(404);
  const platform = await testPlatform({
    command: "dev",
    config: '{ site: { directory: "./web" } }',
    files: { "web/docs/README.md": "of the site", "web/index.html": "first" },
  });
  expect(await (await fetch(`${platform.url}/docs/README.md`)).text()).toBe("of the site");
  expect(await (await fetch(`${platform.url}/`)).text()).toBe("first");
  expect((await fetch(`${platform.url}/docs/kv.md`)).status).toBe(200);
  await platform.stop();
});

test("[CL440] docs prints a page, the list without one, and names the pages for another", async () => {
  const docs = (...page: string[]) => {
    const child = Bun.spawnSync([...platformCommand(), "docs", ...page], { env: testEnvironment(), stdin: "ignore" });
    return { code: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
  };
  for (const [page, name] of [
    [[], "README.md"],
    [["kv"], "kv.md"],
    [["deploy/nginx.md"], "deploy/nginx.md"],
  ] as const) {
    expect(docs(...page)).toEqual({
      code: 0,
      stdout: `${(await Bun.file(join(DOCS, name)).text()).trimEnd()}\n`,
      stderr: "",
    });
  }
  expect(docs("tabels")).toMatchObject({ code: 2, stderr: expect.stringContaining('(did you mean "tables"?)') });
});
