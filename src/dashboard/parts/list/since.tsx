import { Select } from "@mantine/core";

const HOUR_MS = 3_600_000;
const SPANS = {
  "10m": { label: "Last 10 minutes", ms: HOUR_MS / 6 },
  "1h": { label: "Last hour", ms: HOUR_MS },
  "24h": { label: "Last 24 hours", ms: 24 * HOUR_MS },
  "7d": { label: "Last 7 days", ms: 7 * 24 * HOUR_MS },
  "30d": { label: "Last 30 days", ms: 30 * 24 * HOUR_MS },
} as const;

/** Time span back from now, as kept in an address. */
export type Since = keyof typeof SPANS;

/** Parses a span from an address, which is untrusted. */
export const sinceOf = (given: unknown): Since | undefined =>
  Object.keys(SPANS).find((one): one is Since => one === given);

/** Returns the beginning of a span, in milliseconds since 1970. */
export const beginningOf = (since: Since): number => Date.now() - SPANS[since].ms;

/** Limits a list to a recent time span. `hasRange`: with the choice of two moments. */
export function SinceSelect<Choice extends Since | "range">({
  value,
  hasRange = false,
  onChange,
}: {
  value: Choice | undefined;
  hasRange?: boolean;
  onChange(next: Choice | undefined): void;
}) {
  const spans = Object.entries(SPANS).map(([since, { label }]) => ({ value: since, label }));
  return (
    <Select
      aria-label="Time"
      placeholder="Any time"
      clearable
      clearButtonProps={{ "aria-label": "Clear time" }}
      data={hasRange ? [...spans, { value: "range", label: "From … to …" }] : spans}
      value={value ?? null}
      // The choices are those of `data`.
      onChange={(next) => onChange((next ?? undefined) as Choice | undefined)}
      w={180}
    />
  );
}
