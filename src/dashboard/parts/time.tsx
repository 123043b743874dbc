import { Text } from "@mantine/core";
import { agoText, timeText } from "./format.ts";

/** When something was, by the distance from now; the exact time is its title. */
export function Ago({ time }: { time: string | number | null }) {
  if (time === null) return <Text c="dimmed">–</Text>;
  return (
    <time dateTime={new Date(time).toISOString()} title={timeText(time)}>
      {agoText(time)}
    </time>
  );
}
