import { expect, test } from "bun:test";
import { testPlatform, until } from "../../support/index.ts";

const TEXTS = ['order {"id":7} of {name}', "{{twice}} }} {{", "{*} {} {", "100 % %s"];

const CONFIG = `export default {
  databases: { shared: { tables: { notes: {
    schema: { at: { type: "datetime" } },
    access: { read: (auth) => [["at", "<", "2026"]] },
  } } } },
  jobs: { tell: { run: ({ log }) => {
    for (const text of ${JSON.stringify(TEXTS)}) log.info(text, { name: "somebody" });
    log.warn("facts that throw", { get name() { throw new Error("no name"); } });
    log.warn("facts that throw below", { order: { get name() { throw new Error("no name"); } } });
    log.error(new Error("no text"));
  } } },
  routes: (api) => api.post("/tell", ({ app }) => app.jobs.enqueue("tell"), { access: true }),
};`;

for (const form of ["json", "pretty"] as const) {
  test(`[CL422] what code of a config logs is printed as it is, and not lost: ${form}`, async () => {
    const platform = await testPlatform({ config: CONFIG, args: ["--log", form] });
    expect((await platform.post("/api/functions/tell")).status).toBe(200);
    await until("the job has ended", () => platform.stderr().includes("no text"));
    const lines = platform.stderr().split("\n");
    for (const text of TEXTS) {
      const shown = form === "json" ? `"message":${JSON.stringify(text)}` : ` ${text} `;
      expect(lines.filter((line) => line.includes(shown) && line.includes("somebody"))).toHaveLength(1);
    }
    for (const text of ["facts that throw", "facts that throw below"])
      await until("the log says so", () => platform.stderr().includes(text));
    const kept = JSON.stringify((await platform.service.get("/api/admin/logs?limit=50")).body);
    for (const text of [...TEXTS, "facts that throw", "facts that throw below", "Error: no text"]) {
      expect(kept).toContain(`"message":${JSON.stringify(text)}`);
    }
    await platform.stop();
  });
}
