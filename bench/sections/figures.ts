import type { Result } from "../support/section.ts";
import { milliseconds, perSecond } from "../support/statistics.ts";

const NOTHING = { p50: null, p99: null, floor: null, ratio: null, target: null, isMet: null };

/** Creates a result without a floor, whose unit is in its text. */
export const plain = (name: string, measured: string): Result => ({ ...NOTHING, name, measured });

export const duration = (name: string, ms: number): Result => plain(name, milliseconds(ms));

/** Creates a result from `p50Ms` and `p99Ms` of single requests, with those of a floor if there is one. */
export function latency(name: string, own: { p50Ms: number; p99Ms?: number }, floorP50Ms?: number): Result {
  return {
    ...plain(name, milliseconds(own.p50Ms)),
    p50: milliseconds(own.p50Ms),
    p99: own.p99Ms === undefined ? null : milliseconds(own.p99Ms),
    floor: floorP50Ms === undefined ? null : milliseconds(floorP50Ms),
    ratio: floorP50Ms === undefined ? null : own.p50Ms / floorP50Ms,
  };
}

export interface Rate {
  perSecond: number;
  unit?: string;
  p50Ms?: number;
  p99Ms?: number;
  floorPerSecond?: number;
}

export function rate(name: string, { perSecond: value, unit, p50Ms, p99Ms, floorPerSecond }: Rate): Result {
  return {
    ...plain(name, perSecond(value, unit)),
    p50: p50Ms === undefined ? null : milliseconds(p50Ms),
    p99: p99Ms === undefined ? null : milliseconds(p99Ms),
    floor: floorPerSecond === undefined ? null : perSecond(floorPerSecond, unit),
    ratio: floorPerSecond === undefined ? null : value / floorPerSecond,
  };
}
