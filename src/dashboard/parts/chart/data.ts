export const CHART_HEIGHT_PX = 180;

type Colour = "blue" | "teal" | "orange" | "red";

/** One line of a chart. */
export interface Series {
  name: string;
  colour: Colour;
  /** Values, one for each time; null: unknown. */
  values: readonly (number | null)[];
}

export interface ChartData {
  title: string;
  /** Times in milliseconds since 1970, ascending. */
  times: readonly number[];
  series: readonly Series[];
  /** Minimum for the top of the axis, so that tiny values do not fill a chart. */
  least: number;
  format(value: number): string;
}

/** Returns a colour defined in app.css for light and dark mode. */
export const colourOf = (colour: Colour): string => `var(--chart-${colour})`;
