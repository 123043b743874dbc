import { Group, Progress, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { bytesText } from "../../parts/format.ts";

const PERCENT = 100;
const NEARLY_FULL = 0.9;

/** What the config says of the bucket; it needs the scope that reading its files needs. */
export const useBucket = (bucket: string) =>
  useQuery({ queryKey: ["files", bucket, "bucket"], queryFn: () => server.buckets.describe(bucket) });

/** How much of the bucket's quota is used. Buckets without one show nothing. */
export function Quota({ bucket }: { bucket: string }) {
  const quota = useBucket(bucket).data?.quota ?? null;
  if (quota === null) return null;
  const { total, perUser, used } = quota;
  const share = total === null ? 0 : used / total;
  const parts = [
    total === null ? `${bytesText(used)} used` : `${bytesText(used)} of ${bytesText(total)} used`,
    perUser === null ? null : `${bytesText(perUser)} for each user`,
  ];
  const text = parts.filter((part) => part !== null).join(", ");
  return (
    <Group gap="sm" wrap="nowrap">
      {total === null ? null : (
        <Progress
          w={160}
          size="sm"
          value={Math.min(PERCENT, share * PERCENT)}
          color={share >= NEARLY_FULL ? "red" : "ink"}
          aria-label={`Quota: ${text}`}
        />
      )}
      <Text size="sm" c="dimmed" className="number">
        {text}
      </Text>
    </Group>
  );
}
