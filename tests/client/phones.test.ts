import { afterAll, beforeAll, expect, test } from "bun:test";
import { createClient, memoryStore } from "../../src/client/index.ts";
import { PASSWORD } from "../http/auth/auth-support.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import { until } from "../support/until.ts";
import { errorOf } from "./support.ts";

// Phones of a client. Texts go to a server of the test.

let receiver: Bun.Server<unknown>;
let platform: TestPlatform;
const sent: { to: string; code: string }[] = [];

beforeAll(async () => {
  receiver = Bun.serve({
    port: 0,
    async fetch(request) {
      const text: (typeof sent)[number] = JSON.parse(await request.text());
      sent.push(text);
      return new Response("ok");
    },
  });
  platform = await testPlatform({
    config: `import { defineConfig, webhookSender } from "platform";
export default defineConfig({
  auth: { mfa: { phone: true }, phones: { countries: ["AT"],
    send: webhookSender({ url: "${receiver.url}", secret: "${btoa("the secret of the texts, 32 bytes")}" }) } },
});
`,
  });
});
afterAll(async () => {
  await receiver.stop(true);
  await platform.stop();
});

const clientOf = () => createClient({ url: platform.url, store: memoryStore() });
/** Returns the code of the text that `ask` has sent. */
async function codeOf<T>(phone: string, ask: () => Promise<T>): Promise<{ code: string; answer: T }> {
  const texts = () => sent.filter(({ to }) => to === phone);
  const before = texts().length;
  const answer = await ask();
  await until("the text is sent", () => texts().length > before);
  return { code: texts().at(-1)?.code ?? "", answer };
}

test("[TC400] a code that is sent to a phone signs in", async () => {
  const { auth } = clientOf();
  const phone = "+436606234001";
  const { code } = await codeOf(phone, () => auth.phone.request({ phone }));
  const { user } = await auth.phone.use(phone, code);
  expect(user).toMatchObject({ phone, email: null });
  expect(auth.user).toMatchObject({ phone });
  expect(await errorOf(auth.phone.use(phone, code))).toMatchObject({ status: 400, fields: { code: {} } });
});

test("[TC400] the number is changed by its code, and is a second factor once it is enrolled", async () => {
  const { auth } = clientOf();
  const [phone, next] = ["+436606234002", "+436606234003"];
  const credentials = { email: "phones@example.com", password: PASSWORD };
  await auth.signUp(credentials);
  const change = await codeOf(phone, () => auth.phone.change({ newPhone: phone }));
  await auth.phone.confirm(change.code);
  expect(await auth.reload()).toMatchObject({ phone });
  const { code, answer } = await codeOf(phone, () => auth.mfa.enroll("phone"));
  expect(answer.recoveryCodes.length).toBe(10);
  await auth.mfa.verify(answer.factorId, code, "phone");

  const other = clientOf().auth;
  const { mfa } = await other.signIn(credentials);
  expect(mfa?.factors).toEqual([{ id: answer.factorId, type: "phone" }]);
  const second = await codeOf(phone, async () => mfa?.send());
  await mfa?.verify(second.code);
  expect(other.user).toMatchObject({ phone });

  expect(await errorOf(auth.phone.change({ newPhone: next }))).toMatchObject({ status: 400 });
  const proof = await codeOf(phone, () => auth.mfa.send());
  const moved = await codeOf(next, () => auth.phone.change({ newPhone: next, code: proof.code }));
  await auth.phone.confirm(moved.code);
  const removal = await codeOf(next, () => auth.mfa.send());
  await auth.mfa.remove({ code: removal.code }, "phone");
  expect(await auth.mfa.factors()).toEqual([]);
  await auth.phone.change({ newPhone: null });
  expect(await auth.reload()).toMatchObject({ phone: null });
});
