export const RESULT_CHART_HEIGHT_PX = 300;

/** Numbers of a result, each with its label. */
export interface ResultChartData {
  kind: "bars" | "line";
  /** Name of the numbers. */
  name: string;
  labels: readonly string[];
  values: readonly (number | null)[];
}
