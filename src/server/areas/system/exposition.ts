/** Prometheus text format 0.0.4. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string>>;

interface Family {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
}

interface Sample {
  labels?: Labels;
  /** For histograms: `_bucket`, `_sum`, `_count`. */
  suffix?: string;
  value: number;
}

/** The lines of one metric: help, type and all samples. */
export function family({ name, help, type }: Family, samples: readonly Sample[]): string {
  const lines = samples.map(({ labels = {}, suffix = "", value }) => `${name}${suffix}${labelText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** A gauge with a single sample and no labels. */
export const gauge = (name: string, help: string, value: number): string =>
  family({ name, help, type: "gauge" }, [{ value }]);

/** A counter with a single sample and no labels. */
export const counter = (name: string, help: string, value: number): string =>
  family({ name, help, type: "counter" }, [{ value }]);

export interface Histogram {
  labels: Labels;
  /** The count of each bucket by itself, not cumulative. The last bucket has no upper bound. */
  counts: readonly number[];
  sum: number;
}

/** `bounds` are the upper bounds of all buckets except the last. The output is cumulative, as the format requires. */
export function histogramFamily(
  name: string,
  help: string,
  bounds: readonly number[],
  histograms: readonly Histogram[],
): string {
  const samples = histograms.flatMap(({ labels, counts, sum }) => {
    let cumulated = 0;
    const buckets = counts.map((count, index) => {
      cumulated += count;
      return { suffix: "_bucket", labels: { ...labels, le: String(bounds[index] ?? "+Inf") }, value: cumulated };
    });
    return [...buckets, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: cumulated }];
  });
  return family({ name, help, type: "histogram" }, samples);
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

const escapeLabel = (value: string): string =>
  value.replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
