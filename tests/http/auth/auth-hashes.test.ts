import { afterAll, beforeAll, expect, test } from "bun:test";
import { pbkdf2Sync } from "node:crypto";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

const PASSWORD = "correct horse battery";
const UNLIMITED = "{ requests: 100000, window: 60 }";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{ rateLimits: { auth: ${UNLIMITED}, signin: ${UNLIMITED} } }`,
  });
});
afterAll(() => platform.stop());

test("[AU270] many sign-ins at once are each answered by their own password, whatever hash it has", async () => {
  const salt = Buffer.from("0123456789abcdef");
  const derived = pbkdf2Sync(PASSWORD, salt, 2_000, 32, "sha256").toString("base64");
  const hashes = [
    await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 4 }),
    `pbkdf2:sha256:2000:${salt.toString("base64")}:${derived}`,
  ];
  const imported = hashes.flatMap((passwordHash, kind) =>
    [0, 1, 2].map((index) => ({ email: `hash-${kind}-${index}@example.com`, passwordHash })),
  );
  const plain = [0, 1, 2, 3, 4, 5].map((index) => ({ email: `plain-${index}@example.com`, password: PASSWORD }));
  const users = [...imported, ...plain];
  const answer = await platform.service.post<{ results: { success: boolean }[] }>("/api/admin/auth/users/import", {
    users,
  });
  expect(answer.body.results.map(({ success }) => success)).toEqual(users.map(() => true));

  const tries = users.flatMap(({ email }) => [
    { email, password: PASSWORD, status: 200 },
    { email, password: `${PASSWORD}!`, status: 401 },
  ]);
  tries.push({ email: "nobody@example.com", password: PASSWORD, status: 401 });
  const answers = await Promise.all(
    tries.map(({ email, password }) =>
      platform.post<{ user?: { email: string } }>("/api/auth/signin", { email, password }),
    ),
  );
  expect(answers.map(({ status, body }) => [status, body.user?.email])).toEqual(
    tries.map(({ email, status }) => [status, status === 200 ? email : undefined]),
  );
});
