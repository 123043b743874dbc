import { Select } from "@mantine/core";

const HOUR_MS = 3_600_000;
const SPANS = {
  "10m": { label: "Last 10 minutes", ms: HOUR_MS / 6 },
  "1h": { label: "Last hour", ms: HOUR_MS },
  "24h": { label: "Last 24 hours", ms: 24 * HOUR_MS },
  "7d": { label: "Last 7 days", ms: 7 * 24 * HOUR_MS },
  "30d": { label: "Last 30 days", ms: 30 * 24 * HOUR_MS },
} as const;

/** A time back from now, as an address has it. */
export type Since = keyof typeof SPANS;

/** An address may hold anything. */
export const sinceOf = (given: unknown): Since | undefined =>
  Object.keys(SPANS).find((one): one is Since => one === given);

/** In milliseconds since 1970. */
export const beginningOf = (since: Since): number => Date.now() - SPANS[since].ms;

/** Narrows a list to what is of the last time. */
export function SinceSelect({
  value,
  onChange,
}: {
  value: Since | undefined;
  onChange(next: Since | undefined): void;
}) {
  return (
    <Select
      aria-label="Time"
      placeholder="Any time"
      clearable
      clearButtonProps={{ "aria-label": "Clear time" }}
      data={Object.entries(SPANS).map(([since, { label }]) => ({ value: since, label }))}
      value={value ?? null}
      onChange={(next) => onChange(sinceOf(next))}
      w={180}
    />
  );
}
