/** Rows of a search query as the JSON of its answer; the column order is SearchJob's. Metadata is JSON already. */
export function matchesJson(rows: readonly unknown[][]): string {
  const matches = rows.map(([id, score, metadata, values]) => {
    const tail = values instanceof Uint8Array ? `,"values":${valuesJson(values)}}` : "}";
    return `{"id":${JSON.stringify(id)},"score":${JSON.stringify(score)},"metadata":${String(metadata)}${tail}`;
  });
  return `{"matches":[${matches.join(",")}],"count":${matches.length}}`;
}

export function vectorsJson(rows: readonly unknown[][]): string {
  const vectors = rows.map(([id, metadata, values]) => {
    const list = values instanceof Uint8Array ? valuesJson(values) : "[]";
    return `{"id":${JSON.stringify(id)},"values":${list},"metadata":${String(metadata)}}`;
  });
  return `{"vectors":[${vectors.join(",")}]}`;
}

/** Rows of ids and metadata as a page; the row beyond it says that there is another one. */
export function listJson(rows: readonly unknown[][], { prefix, limit }: { prefix: string; limit: number }): string {
  const end = rows.findIndex(([id]) => !String(id).startsWith(prefix));
  const found = end < 0 ? rows : rows.slice(0, end);
  const page = found.slice(0, limit);
  const vectors = page.map(([id, metadata]) => `{"id":${JSON.stringify(id)},"metadata":${String(metadata)}}`);
  const cursor = found.length > limit ? page.at(-1)?.[0] : null;
  return `{"vectors":[${vectors.join(",")}],"cursor":${JSON.stringify(cursor)}}`;
}

function valuesJson(bytes: Uint8Array): string {
  // A blob may be unaligned for 32-bit floats, so it is copied.
  return `[${Array.from(new Float32Array(bytes.slice().buffer), shortestFloat).join(",")}]`;
}

/** The shortest decimal for this 32-bit float: 0.1 is returned as 0.1, not as 0.10000000149011612. */
function shortestFloat(value: number): number {
  if (Number.isInteger(value)) return value;
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}
