import { expect, test } from "bun:test";
import { temporaryDirectory, testClock } from "../../../tests/support/index.ts";
import { systemIds } from "../../kernel/ids.ts";
import { createMailer } from "./mailer.ts";

test("[AU25] a mail that waits to be sent again waits no longer than the server runs, and the log says so", async () => {
  const clock = testClock();
  const errors: [string, Record<string, unknown>][] = [];
  const failed = Promise.withResolvers<void>();
  const mailer = createMailer({
    // Nothing listens on port 1.
    config: { smtp: { host: "127.0.0.1", port: 1 } },
    isDrill: false,
    dataDirectory: temporaryDirectory(),
    clock,
    ids: systemIds,
    logger: {
      info() {},
      warn() {},
      error(message, facts = {}) {
        errors.push([message, facts]);
        // The timer is set when what called the logger has gone on.
        setTimeout(failed.resolve, 0);
      },
    },
  });
  mailer.send("magicLink", { email: "ann@example.com", link: "https://example.com" });
  await failed.promise;
  expect(errors).toMatchObject([["Sending a mail failed", { willRetry: true }]]);
  expect(clock.waiting).toBe(1);
  mailer.stop();
  expect(clock.waiting).toBe(0);
  expect(errors.at(-1)).toEqual(["Mails waiting for another attempt were given up", { count: 1 }]);
});
