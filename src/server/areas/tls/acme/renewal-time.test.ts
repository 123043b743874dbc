import { expect, test } from "bun:test";
import { DAY_MS, MINUTE_MS } from "../../../../kernel/time/duration.ts";
import type { CertificateFacts } from "../certificate.ts";
import { failed, NO_FAILURE, orderOf, parseState, type RenewalState, renewalTime } from "./renewal-time.ts";

const NOW = Date.UTC(2026, 10, 22);
const config = { domains: ["a.example", "b.example"] };
const order = orderOf(config);
const facts = (lifeDays: number, names: readonly string[] = config.domains): CertificateFacts => ({
  names,
  validFrom: NOW,
  validUntil: NOW + lifeDays * DAY_MS,
});
/** Returns the days until the next renewal. */
const dueIn = (certificate: CertificateFacts | null, state: RenewalState = NO_FAILURE): number =>
  (renewalTime(config, { facts: certificate, state, now: NOW }) - NOW) / DAY_MS;

test("[TL17] a certificate is renewed 30 days before its end, one that lives less than 90 days in its last third", () => {
  expect(dueIn(facts(90))).toBe(60);
  expect(dueIn(facts(365))).toBe(335);
  expect(dueIn(facts(45))).toBe(30);
  expect(dueIn(facts(6))).toBe(4);
});

test("[TL17] without a certificate, or without one of the names, it is due at once", () => {
  expect(dueIn(null)).toBe(0);
  expect(dueIn(facts(90, ["a.example"]))).toBe(0);
  expect(dueIn(facts(90, ["*.example"]))).toBe(60);
  expect(
    dueIn(
      facts(
        90,
        ["B.example", "a.example"].map((name) => name.toLowerCase()),
      ),
    ),
  ).toBe(60);
});

test("[TL5] after failures the pauses grow from 2 minutes to 8 hours, four attempts in the first hour", () => {
  let state = NO_FAILURE;
  let now = NOW;
  const attempts: number[] = [];
  for (let turn = 0; turn < 10; turn++) {
    attempts.push((now - NOW) / MINUTE_MS);
    state = failed(state, { order, problem: "no", now });
    now = renewalTime(config, { facts: null, state, now });
  }
  expect(attempts.slice(0, 5)).toEqual([0, 2, 12, 42, 102]);
  expect(attempts.slice(-2).map((at, index, all) => (index === 0 ? 0 : at - (all[0] ?? 0)))).toEqual([0, 8 * 60]);
});

test("[TL5] a time that the authority names is waited for, a day at most", () => {
  const at = (problem: string): number => (failed(NO_FAILURE, { order, problem, now: NOW }).retryAt - NOW) / MINUTE_MS;
  expect(at("too many failed authorizations, retry after 2026-11-22 03:00:00 UTC: see …")).toBe(180);
  expect(at("retry after 2026-12-22T03:00:00Z")).toBe(24 * 60);
  expect(at("retry after 2020-12-22 03:00:00 UTC")).toBe(2);
});

test("[TL5] failures of another order do not count, nor does a time beyond a clock that was set back", () => {
  const state = failed(NO_FAILURE, { order, problem: "no", now: NOW });
  expect(dueIn(null, { ...state, order: orderOf({ domains: ["c.example"] }) })).toBe(0);
  expect(dueIn(null, { ...state, retryAt: NOW + 900 * DAY_MS })).toBe(1);
  expect(failed({ ...state, order: "another" }, { order, problem: "no", now: NOW }).failures).toBe(1);
  expect(failed(state, { order, problem: "no", now: NOW }).failures).toBe(2);
  expect(orderOf({ domains: ["b.example", "a.example"] })).toBe(order);
});

test("[TL5] a state that cannot be read counts as none", () => {
  const state = failed(NO_FAILURE, { order, problem: "no", now: NOW });
  expect(parseState(JSON.stringify(state))).toEqual(state);
  for (const text of ["", "{", "[]", "null", '{"order":5}', '{"order":"a","failures":"1","retryAt":1}']) {
    expect(parseState(text)).toEqual(NO_FAILURE);
  }
});
