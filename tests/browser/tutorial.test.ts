import { expect } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { compiler } from "../../scripts/typescript.ts";
import { testBrowser } from "../support/browser.ts";
import { blocksOf, TYPESCRIPT_OPTIONS } from "../support/guide.ts";
import { testPlatform } from "../support/index.ts";

// The page of docs/tutorial.md does what the tutorial says. Its other examples are run by tests/http/guide/guide.test.ts.

const ROOT = resolve(import.meta.dir, "../..");
/** Packages that the tutorial installs from the registry. */
const INSTALLED = ["react", "react-dom", "@types/react", "@types/react-dom", "csstype", "scheduler"];
const BUILD_TIMEOUT_MS = 180_000;

const { browserTest, openProfile } = testBrowser();

browserTest(
  "the page of the tutorial shows films and reviews as they change",
  async () => {
    const blocks = blocksOf("tutorial.md");
    const files = blocks.filter(({ role }) => role.startsWith("web/") || role.endsWith(".tsx"));
    expect(files.map(({ role }) => role)).toEqual(["web/index.html", "main.tsx"]);
    const config = blocks.findLast(({ role }) => role === "platform.config.ts")?.text ?? "";
    const platform = await testPlatform({
      config,
      files: Object.fromEntries(files.map(({ role, text }) => [role, text])),
    });
    try {
      await buildPage(dirname(platform.configFile), platform.url);
      const films = [
        { id: "heat", title: "Heat", year: 1995 },
        { id: "alien", title: "Alien", year: 1979 },
      ];
      await platform.service.post("/api/db/shared/tables/films/batch", { inserts: films });
      const account = { email: "ann@example.com", password: "correct horse battery" };
      await platform.post("/api/auth/signup", account);

      const [ann, reader] = [await openProfile(), await openProfile()];
      for (const { page } of [ann, reader]) await page.goto(platform.url);
      await ann.page.getByRole("button", { name: "Sign in" }).click();
      await ann.page.getByLabel("Email").fill(account.email);
      await ann.page.getByLabel("Password").fill(account.password);
      await ann.page.getByRole("button", { name: "Sign in" }).click();
      const form = ann.page.getByRole("form", { name: "Review of Heat" });
      await form.getByRole("textbox").fill("The coffee scene.");
      await form.getByRole("button").click();
      await reader.page.getByText("★★★★★ The coffee scene.").waitFor();
      expect(await form.count()).toBe(0);

      await reader.page.getByPlaceholder("Search").fill("ali");
      await reader.page.getByRole("heading", { name: "Heat" }).waitFor({ state: "detached" });
      await platform.service.post("/api/db/shared/tables/films", { title: "Ali", year: 2001 });
      await reader.page.getByRole("heading", { name: "Ali 2001" }).waitFor();
      await ann.page.getByRole("button", { name: account.email }).click();
      await ann.page.getByRole("button", { name: "Open the account" }).click();
      await ann.page.getByRole("button", { name: "Sign out" }).click();
      expect(reader.problems).toEqual([]);
    } finally {
      await platform.stop();
    }
  },
  BUILD_TIMEOUT_MS,
);

/** Builds as the tutorial does, with the packages of this repository and Bun's bundler. Errors: what TypeScript says. */
async function buildPage(directory: string, url: string): Promise<void> {
  const quiet = ["--no-audit", "--no-fund", "--cache", join(directory, "npm-cache"), "--fetch-retries", "0"];
  const installed = Bun.spawnSync(["npm", "install", `${url}/client/platform.tgz`, ...quiet], { cwd: directory });
  expect([installed.exitCode, installed.stderr.toString()]).toEqual([0, expect.any(String)]);
  for (const name of INSTALLED) {
    mkdirSync(dirname(join(directory, "node_modules", name)), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), join(directory, "node_modules", name));
  }
  const tsconfig = { compilerOptions: TYPESCRIPT_OPTIONS, files: ["main.tsx"] };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(tsconfig));
  expect(Bun.spawnSync([...compiler(), "-p", directory]).stdout.toString()).toBe("");
  const built = await Bun.build({
    entrypoints: [join(directory, "main.tsx")],
    outdir: join(directory, "web"),
    target: "browser",
    splitting: true,
    define: { "process.env.NODE_ENV": '"production"' },
  });
  expect(built.success).toBe(true);
  expect(readdirSync(join(directory, "web"))).toContain("main.js");
}
