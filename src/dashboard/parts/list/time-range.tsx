import { TextInput } from "@mantine/core";
import { usePageState } from "../page.tsx";
import { beginningOf, type Since, SinceSelect, sinceOf } from "./since.tsx";

/** Range of time in the address: a span back from now, or two moments in ISO 8601. */
interface RangeState {
  since: Since | "range";
  from: string;
  to: string;
}

const momentOf = (given: unknown): string | null =>
  typeof given === "string" && !Number.isNaN(Date.parse(given)) ? new Date(given).toISOString() : null;

/** Returns the range of time in the address. `from` and `to` are null where it has no such end. */
export function useTimeRange() {
  const { state, change } = usePageState<RangeState>();
  const since = sinceOf(state.since);
  const isRange = state.since === "range";
  const first = isRange ? momentOf(state.from) : null;
  return {
    since,
    isRange,
    first,
    /** End of the range; it is not included. */
    to: isRange ? momentOf(state.to) : null,
    /** Returns the beginning of the range, which moves with a span. */
    from: (): string | null => (since === undefined ? first : new Date(beginningOf(since)).toISOString()),
    /** Text that is another for another range. */
    key: `${state.since ?? ""} ${state.from ?? ""} ${state.to ?? ""}`,
    change,
  };
}

/** Limits a list to a range of time: a span back from now, or between two moments in local time. */
export function TimeRange({
  since,
  isRange,
  first,
  to,
  change,
}: Pick<ReturnType<typeof useTimeRange>, "since" | "isRange" | "first" | "to" | "change">) {
  return (
    <>
      <SinceSelect
        value={isRange ? "range" : since}
        hasRange
        onChange={(next) => change({ since: next, from: undefined, to: undefined })}
      />
      {isRange ? (
        <>
          <Moment label="From" value={first} onChange={(from) => change({ from }, { replace: true })} />
          <Moment label="To" value={to} onChange={(end) => change({ to: end }, { replace: true })} />
        </>
      ) : null}
    </>
  );
}

/** Input of a moment in local time. */
function Moment({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | null;
  onChange(next: string | undefined): void;
}) {
  return (
    <TextInput
      type="datetime-local"
      step={1}
      aria-label={label}
      defaultValue={value === null ? "" : localText(value)}
      onChange={({ currentTarget: { value: text } }) => onChange(momentOf(text) ?? undefined)}
      w={210}
    />
  );
}

/** Formats a moment in local time as its input takes it. */
function localText(time: string): string {
  const date = new Date(time);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
