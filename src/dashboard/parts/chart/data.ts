export const CHART_HEIGHT_PX = 180;

type Colour = "blue" | "teal" | "orange" | "red";

/** One line. */
export interface Series {
  name: string;
  colour: Colour;
  /** One for each time; null: unknown. */
  values: readonly (number | null)[];
}

export interface ChartData {
  title: string;
  /** Milliseconds since 1970, in order. */
  times: readonly number[];
  series: readonly Series[];
  /** The least value at the top of the axis: what is nearly nothing does not fill a chart. */
  least: number;
  format(value: number): string;
}

/** Defined in app.css for light and dark colours. */
export const colourOf = (colour: Colour): string => `var(--chart-${colour})`;
