import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform, until } from "../../support/index.ts";
import { nextEmail, outbox } from "../auth/auth-support.ts";

const READER = "reader-key-0123456789abcdef";
const OTHER = "other-key-0123456789abcdef";
const PATH = "/api/auth/admin/outbox";

interface Mails {
  mails: { id: string; to: string; subject: string; kind: string }[];
  cursor: string | null;
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      auth: {
        emailOtp: true,
        redirectUrls: ["https://app.example.com/*"],
        mail: {
          templates: {
            invite: { subject: "Come in", text: "Open {{link}}", html: '<a href="{{link}}">{{link}}</a>' },
            emailOtp: { subject: "Code {{code}}", text: "Your code is {{code}}" },
          },
        },
      },
      cron: { nightly: { schedule: "30 3 * * *", timezone: "Europe/Berlin", run() {} } },
      serviceKeys: {
        reader: { key: "${READER}", scopes: ["auth:admin:*:read", "jobs:*:mend:read"] },
        other: { key: "${OTHER}", scopes: ["kv:namespace:*:read"] },
      },
    }`,
  });
});
afterAll(() => platform.stop());

const list = async (query = "") =>
  (await platform.withKey(READER).get<Mails & object>(`${PATH}${query}`)).body as Mails;

test("[US362] mails of the outbox are listed and read without their links and codes", async () => {
  const email = nextEmail();
  expect((await platform.service.post("/api/auth/admin/users/invite", { email })).status).toBe(201);
  expect((await platform.post("/api/auth/signin/email-otp", { email })).status).toBe(200);
  const { mails } = await list();
  expect(mails.map(({ to, kind, subject }) => [to, kind, subject])).toEqual([
    [email, "emailOtp", "Code [hidden]"],
    [email, "invite", "Come in"],
  ]);
  const read = await Promise.all(mails.map(({ id }) => platform.withKey(READER).get(`${PATH}/${id}`)));
  expect(read[0]?.body).toMatchObject({ text: "Your code is [hidden]", html: expect.stringContaining("[hidden]<") });
  expect(read[1]?.body).toMatchObject({ text: "Open [hidden]", html: '<a href="[hidden]">[hidden]</a>' });
  const secrets = outbox(platform).flatMap(({ link, code }) => [link, code].filter((secret) => secret !== undefined));
  expect(secrets).toHaveLength(2);
  for (const secret of secrets) expect(JSON.stringify(read.map(({ body }) => body))).not.toContain(secret);
});

test("[US362] a link is hidden whatever its address has that HTML writes otherwise", async () => {
  const invitation = { email: nextEmail(), redirectUrl: "https://app.example.com/it's?a=1&b=%22<x>" };
  expect((await platform.service.post("/api/auth/admin/users/invite", invitation)).status).toBe(201);
  const id = (await list()).mails[0]?.id;
  const { body } = await platform.withKey(READER).get(`${PATH}/${id}`);
  expect(body).toMatchObject({ to: invitation.email, text: "Open [hidden]", html: '<a href="[hidden]">[hidden]</a>' });
});

test("[US362] pages of the outbox follow one another, bad parameters are 400, and unknown ids 404", async () => {
  for (let n = 0; n < 3; n++) await platform.service.post("/api/auth/admin/users/invite", { email: nextEmail() });
  const all = (await list()).mails.map(({ id }) => id);
  const first = await list("?limit=2");
  const rest = await list(`?limit=100&cursor=${first.cursor}`);
  expect([...first.mails, ...rest.mails].map(({ id }) => id)).toEqual(all);
  expect(rest.cursor).toBeNull();
  expect((await platform.service.get(`${PATH}?limit=101`)).status).toBe(400);
  for (const id of ["nothing", "..%2Fsecrets", "..%2F..%2Fetc%2Fpasswd", crypto.randomUUID()]) {
    expect({ id, status: (await platform.service.get(`${PATH}/${id}`)).status }).toEqual({ id, status: 404 });
  }
});

test("[US362] the outbox needs auth:admin:*:read", async () => {
  for (const path of [PATH, `${PATH}/x`]) {
    expect((await platform.get(path)).status).toBe(401);
    expect((await platform.withKey(OTHER).get(path)).status).toBe(403);
  }
});

interface Schedules {
  schedules: { name: string; schedule: string; timezone: string; next: string[]; lastAt: string | null }[];
}

test("[JB360] schedules are listed with their next runs, for keys that may read their jobs", async () => {
  const path = "/api/admin/schedules";
  const { schedules } = (await platform.service.get<Schedules & object>(path)).body as Schedules;
  expect(schedules).toEqual([
    {
      ...{ name: "cron:nightly", schedule: "30 3 * * *", timezone: "Europe/Berlin" },
      ...{ next: expect.any(Array), lastAt: null },
    },
  ] as never);
  const times = schedules[0]?.next ?? [];
  expect(times).toHaveLength(5);
  const local = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", timeStyle: "short" });
  for (const time of times) expect(local.format(new Date(time))).toBe("03:30");
  expect([...times].sort()).toEqual(times);
  expect((await platform.get(path)).status).toBe(401);
  expect((await platform.withKey(OTHER).get(path)).status).toBe(403);
});

test("[JB361] a schedule is run now, once at a time, by keys that may change its jobs", async () => {
  const path = "/api/admin/schedules/cron:nightly/run";
  const made = await platform.service.post<{ id: string }>(path, undefined);
  expect(made.status).toBe(200);
  await until("its job is done", async () => {
    const { jobs } = (
      await platform.service.get<{ jobs: { id: string; state: string }[] }>("/api/admin/jobs?name=cron:nightly")
    ).body;
    return jobs.some(({ id, state }) => id === made.body.id && state === "done");
  });
  const { entries } = (
    await platform.service.get<{ entries: { target: string }[] }>("/api/admin/audit?action=job.run-now")
  ).body;
  expect(entries.map(({ target }) => target)).toContain(`jobs/cron:nightly/${made.body.id}`);
  expect((await platform.post(path, undefined)).status).toBe(401);
  expect((await platform.withKey(OTHER).post(path, undefined)).status).toBe(403);
  expect((await platform.service.post("/api/admin/schedules/cron:none/run", undefined)).status).toBe(404);
});
