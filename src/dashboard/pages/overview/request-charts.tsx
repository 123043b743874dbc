import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { FIGURES_EVERY_MS } from "../../limits.ts";
import { RequestsChart, ResponseTimesChart } from "../../parts/chart/requests.tsx";
import { Failure, Loading } from "../../parts/states.tsx";

/** Requests of the last hour, by the minute. */
export function RequestCharts() {
  const report = useQuery({
    queryKey: ["analytics", "overview"],
    refetchInterval: FIGURES_EVERY_MS,
    queryFn: () => server.analytics.requests({ range: "1h", groupBy: "minute" }),
  });
  if (report.data === undefined) {
    return report.error === null ? <Loading /> : <Failure error={report.error} onRetry={() => void report.refetch()} />;
  }
  const { timeSeries } = report.data;
  return (
    <>
      <RequestsChart points={timeSeries} hint="Last hour, numbers of the last minute" />
      <ResponseTimesChart points={timeSeries} hint="Last hour, numbers of the last minute" />
    </>
  );
}
