import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";
import { nextEmail, PASSWORD } from "./auth-support.ts";
import { PageVisitor } from "./pages-visitor.ts";

// The pages with other languages, a CAPTCHA, behind a proxy with https and a path of its own.

/** The names of all texts: those that a language without any lacks. */
function textNames(): string[] {
  const file = join(temporaryDirectory(), "platform.config.ts");
  writeFileSync(
    file,
    `import { defineConfig } from "platform";
    export default defineConfig({ auth: { pages: { languages: { ar: {} as never } } } });`,
  );
  const { stderr } = Bun.spawnSync([...platformCommand(), "check", "--config", file], { env: testEnvironment() });
  return [...stderr.toString().matchAll(/languages\.ar\.(\w+): is missing/g)].map(([, name = ""]) => name);
}

let platform: TestPlatform;
beforeAll(async () => {
  const texts = { ...Object.fromEntries(textNames().map((name) => [name, `ع ${name} {name}`])), dir: "rtl" };
  platform = await testPlatform({
    config: `{
      server: { publicUrl: "https://example.com/backend/" },
      auth: {
        captcha: { provider: "turnstile", siteKey: "site-key", secretKey: "s", endpoint: "http://127.0.0.1:1/" },
        passkeys: { rpName: "Acme", rpId: "elsewhere.example", origin: ["https://elsewhere.example", "https://app.elsewhere.example"] },
        pages: { languages: { ar: ${JSON.stringify(texts)} } },
      },
      site: { directory: "./web" },
    }`,
    files: { "web/index.html": "home", "web/auth/index.html": "mine" },
  });
});
afterAll(() => platform.stop());

test("[CF362] check names every text that a language lacks", () => {
  const names = textNames();
  expect(names).toContain("signIn");
  expect(names.length).toBeGreaterThan(90);
});

test("[AU336] a language of the config is chosen by its tag, with its direction", async () => {
  for (const accepted of ["ar", "ar-EG,en;q=0.5", "AR;q=0.9"]) {
    const { text } = await new PageVisitor(platform).open("/auth/sign-in", { "accept-language": accepted });
    expect(text).toContain('<html lang="ar" dir="rtl">');
    expect(text).toContain("ع signIn");
  }
});

test("[AU333] the widget of a CAPTCHA is the one foreign source, and its forms say that they need JavaScript", async () => {
  const { text, headers } = await new PageVisitor(platform).open("/auth/sign-up");
  const policy = headers.get("content-security-policy") ?? "";
  expect(new Set(policy.match(/https?:[^\s;]+/g))).toEqual(new Set(["https://challenges.cloudflare.com"]));
  expect(text).toContain('data-sitekey="site-key"');
  expect(text).toContain("<noscript>");
  const refused = await new PageVisitor(platform).send("/backend/auth/sign-up".slice(8), {
    email: nextEmail(),
    password: PASSWORD,
  });
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("show that you are human");
});

test("[AU332] behind a proxy with https, cookies are __Host- and links begin with the proxy's path", async () => {
  const answer = await platform.fetch("/auth/sign-in?token=x");
  expect(answer.headers.get("location")).toBe("/backend/auth/sign-in");
  expect(answer.headers.getSetCookie()).toEqual([
    expect.stringMatching(
      /^__Host-platform_visit_[0-9a-f]{8}=[\w-]+; HttpOnly; SameSite=Lax; Path=\/; Secure; Max-Age=1800$/,
    ),
  ]);
  const { text } = await new PageVisitor(platform).open("/auth/sign-in");
  expect(text).toContain('action="/backend/auth/sign-in"');
  expect(text).not.toMatch(/(?:href|src|action)="\/auth/);
});

test("[AU348] where the pages' host does not fit the relying party they show no passkeys", async () => {
  const { text } = await new PageVisitor(platform).open("/auth/sign-in");
  expect(text).not.toContain("data-passkey");
  expect((await platform.fetch("/auth/passkeys/sign-in", { method: "POST" })).status).toBe(404);
});

test("[CF361] the start warns of what the pages hide in the site, and of passkeys that they cannot show", () => {
  expect(platform.stderr()).toContain('has \\"auth\\", which the pages of auth.pages hide');
  expect(platform.stderr()).toContain("the pages show none");
});
