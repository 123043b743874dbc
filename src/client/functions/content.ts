/** Numbers, booleans, objects and lists are read; other texts stay as they are, also those that look like dates. */
export function readText(text: string): unknown {
  if (!/^\s*[[{\d.tf-]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The content of an answer by its type. A stream is an async generator: of events, or of pieces as they come. */
export async function contentOf(response: Response): Promise<unknown> {
  const { headers } = response;
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  if (type === "text/event-stream") return eventsOf(response);
  if (type === "application/octet-stream") return response.arrayBuffer();
  // Of several parts with one name the last counts.
  if (type === "multipart/form-data") return Object.fromEntries(await response.formData());
  const isStream = headers.get("transfer-encoding") === "chunked" && !headers.has("content-length");
  if (isStream && type.startsWith("text/")) return valuesOf(response);
  const text = await response.text();
  if (type !== "application/json") return readText(text);
  return text === "" ? null : JSON.parse(text);
}

async function* piecesOf({ body }: Response): AsyncGenerator<string> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    // Who stops reading wants no more of it.
    void reader.cancel().catch(() => {});
  }
}

async function* valuesOf(response: Response): AsyncGenerator<unknown> {
  for await (const piece of piecesOf(response)) yield readText(piece);
}

/** Server-sent events, as objects with their fields. */
async function* eventsOf(response: Response): AsyncGenerator<unknown> {
  let waiting = "";
  for await (const piece of piecesOf(response)) {
    const blocks = (waiting + piece).split("\n\n");
    waiting = blocks.pop() ?? "";
    yield* blocks.flatMap(eventOf);
  }
  yield* eventOf(waiting);
}

/** One event; none for a block of comments. */
function eventOf(block: string): Record<string, unknown>[] {
  const fields = block.split("\n").flatMap((line) => {
    const at = line.indexOf(":");
    return at < 1 ? [] : [[line.slice(0, at).trim(), readText(line.slice(at + 1).replace(/^ /, ""))]];
  });
  return fields.length === 0 ? [] : [Object.fromEntries(fields)];
}
